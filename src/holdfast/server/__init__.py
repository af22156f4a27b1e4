"""The server: analysts ask over HTTP, through the same door as everywhere.

settings    how it is run               hosting     the holdouts it has opened
reception   every request, first        identity    who asks, and what they may do
service     the way to the holdout      slots       when an answer leaves
jobs        questions that take long    rates       how often one may ask
heads       first lines, bounded        counts      what a monitor may know
routes/     the addresses               page/       what a browser shows
"""

from __future__ import annotations
