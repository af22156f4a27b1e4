"""Evidence for what is told: answers over single rows, without a plan and without noise.

figures   how wide bars are, read from a holdout's own answers on made rows
attacks   analysts who know all but the labels, beside naive reuse and known remedies
made      made rows in a holdout of their own
"""

from __future__ import annotations
