"""The SQL engine: questions are parsed, checked, written anew and run in a locked DuckDB.

language     what may be written: one table of functions with their bounds, and the checked tree
parser       text to tree, or a refusal that says why
estimator    tree to SQL; what is known of its values
engine       SqlEngine: estimators on the blocks of a store
worker       the process that DuckDB runs in
"""
