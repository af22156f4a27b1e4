"""What the experiments on scaling share.

sizes           the blocks that each method needs for the same promise
slopes          the exponent of a power law, fitted; where one curve falls below another
lines           curves on log axes, named at their ends or below
given           a source for blocks that were simulated: a question is its value on every block
laws            heavy-tailed laws, and the laws of estimators on blocks of them
locations       who may be asked for the location of heavy-tailed values
stable_medians  who answers the paper's examples
rates           whether so many failures can come from a promised rate
"""
