"""Attacks on blocks of fair signs: every law is known exactly, and millions of looks are fast.

population   blocks of fair signs, and the law of their sums
questions    what may be asked of them
responders   who holds them, and answers
analysts     the sign aggregator, and the persistent analyst
collecting   the collector of labels
tuning       how an analyst should divide its looks
attack       many runs of one attack, on the naive median and on planned looks
figures      the picture of an attack
demo         all of it for `holdfast lab attack`
"""
