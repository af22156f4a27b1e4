"""Analysts who try to be told wrong numbers, and the methods that answer them: one framework.

    conversation   questions, replies, responders, analysts, and the interview; how to add one
    targets        what is attacked: every protocol of Holdfast as a responder
    textbook       known remedies as responders
    analysts       published attacks
    learners       the collector and the aggregator, with exact laws
    signs          blocks of fair signs: looks and exact medians under long attacks
    protocols      an attack on each protocol; results: many runs, and their page

`python -m holdfast_lab.attacks --runs 300 --seed 1 --output PAGE.md` attacks all protocols.
"""
