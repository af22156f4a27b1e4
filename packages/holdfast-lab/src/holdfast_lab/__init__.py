"""The lab: analysts who attack a holdout, experiments that count how often they win, pictures.

attacks      one framework: who asks, who answers, and an attack on every protocol
audit        how often a plan fails under attack, and how far the best attack is from it
baselines    the textbook's mechanisms, done right
experiments  config files, and what each of them measures, draws and finds
scaling      what the experiments on growth share; flights: the population of two of them
runner       runs experiments: in parallel, resumable, results as tables, figures from them
statistics   what a number of failures says about the rate of failure
figures      how the pictures look; page: all of them on one
told         how wide bars are that are told, attacks on them, thirty models on real flights
demo         `holdfast demo`, and models: those that it tunes; cli: all commands
"""
