"""The lab: analysts who attack a holdout, experiments that count how often they win, pictures.

conversation      how analysts and responders talk
analysts          who asks: each file one published attack, or one of ours
responders        who answers: every protocol, and every baseline
worlds            populations that experiments draw from
experiments       config files, and what each of them measures, draws and finds
scaling           what the experiments on growth share
runner            runs experiments: in parallel, resumable, results as tables, figures from them
audit             how often a plan fails under attack, and how far the best attack is from it
signs             attacks on blocks of fair signs, where every rank is known exactly
protocol_attacks  one attack on each protocol
statistics        what a number of failures says about the rate of failure
style             how the pictures look
"""
