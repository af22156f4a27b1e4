"""Python functions as estimators: evaluated block by block, in processes that can be killed.

    identity     the hash that says whether two functions ask the same question
    estimator    a function, how it is called, how it travels, and its results as numbers
    metrics      scores of models and predictions; Holdfast's own are evaluated in this process
    admission    what is tried on public blocks before sealed ones are asked
    engine       LocalEngine: workers that are started once and replaced when they die
    worker       what runs in a worker, and in the forks that call the function
    sandbox      what a fork may not do, and what it may leave behind

The user's function runs in forks of a worker only: not in the caller's process, nor in the worker.
"""

from __future__ import annotations
