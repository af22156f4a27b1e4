"""The lab: analysts who attack a holdout, experiments that count how often they win, pictures.

population    blocks of fair signs, where the rank of every answer is known exactly
questions     what an analyst can ask of them, and who answers: exactly, or by looks
analysts      who asks: the sign aggregator, the persistent analyst
attack        many runs of one attack: `python -m holdfast.lab.attack` writes the evidence
statistics    what a number of failures says about the rate of failure
figures       the picture of an attack (needs matplotlib, the extra `plot`)
demo          `holdfast demo`
"""
