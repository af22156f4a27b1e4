"""Why a part of SQL is refused, and what to write instead, by sqlglot's name of it."""

from __future__ import annotations

__all__ = ["CLASSES", "HINTS", "TOKENS"]

_SUBQUERY = "Subqueries are not allowed: a question is one expression over the columns."
_LIST = "Lists, structs and maps are not allowed: they can grow without bound."
_NAMED = "Columns are written by their names alone, without a table or a field."
_PARAMETER = "Parameters are not allowed. Write the value itself."
_REGULAR = "Regular expressions are not allowed: some take very long. Write x LIKE 'A%'."
_ORDER = "ORDER BY and LIMIT are not allowed in an aggregate. For a quantile write median(x)."
_BITS = "Operators on bits are not allowed: numbers are floats here."
_TEXT = "Texts cannot be joined or built: they could grow without bound."
_STRING = "Text constants are written in plain single quotes."
_CAST = (
    "Casts are not allowed: they can fail on some values, and a failure tells of the data."
    " Dates are written DATE '2024-12-31'."
)

CLASSES = {
    "All": _SUBQUERY,
    "Tuple": _LIST,
    **dict.fromkeys(["Dot", "Identifier"], _NAMED),
    "WithinGroup": _ORDER,
    "Star": "A star is allowed in count(*) alone.",
    "Concat": _TEXT,
    "Alias": "Names for results are not allowed.",
    "AtTimeZone": "Time zones are not allowed: timestamps are in UTC.",
    "Cast": _CAST,
    "Distinct": "DISTINCT is allowed in count(DISTINCT x) alone.",
    **dict.fromkeys(
        ["IgnoreNulls", "RespectNulls"],
        "Aggregates leave NULL out by themselves. Leave the words out.",
    ),
}
"""sqlglot's class → why it is refused. A class that is not here is refused by its name."""

TOKENS = {
    **dict.fromkeys(["SELECT", "UNION", "EXCEPT", "INTERSECT", "WITH", "VALUES"], _SUBQUERY),
    **dict.fromkeys(["L_BRACKET", "L_BRACE"], _LIST),
    **dict.fromkeys(["DOT", "HASH"], _NAMED),
    **dict.fromkeys(["PLACEHOLDER", "PARAMETER"], _PARAMETER),
    **dict.fromkeys(["TILDE", "RLIKE", "IRLIKE", "SIMILAR_TO", "GLOB"], _REGULAR),
    **dict.fromkeys(["ORDER_BY", "LIMIT", "OFFSET", "FETCH"], _ORDER),
    **dict.fromkeys(["AMP", "PIPE", "XOR"], _BITS),
    **dict.fromkeys(["RAW_STRING", "HEX_STRING", "BYTE_STRING", "UNICODE_STRING"], _STRING),
    **dict.fromkeys(["BIT_STRING", "NATIONAL_STRING", "HEREDOC_STRING"], _STRING),
    **dict.fromkeys(["COLON_EQ", "FARROW"], "Arguments have no names here."),
    "ALIAS": f"Names for results are not allowed. {_CAST}",
    "ARROW": "Lambdas are not allowed.",
    "COLLATE": "Collations are not allowed.",
    "DCOLON": _CAST,
    "DIV": "// is not allowed. Write floor(x / y).",
    "DPIPE": _TEXT,
    "ESCAPE": "LIKE takes no ESCAPE.",
    "ILIKE": "ILIKE is not allowed. Write lower(x) LIKE 'a%'.",
    "INTERVAL": "Intervals are not allowed. Write date_diff('day', a, b) or compare with a DATE.",
    "OVER": "Window functions are not allowed: a question is one value for each block.",
}
"""sqlglot's kind of token → why it is refused, or what was meant by a text that cannot be read."""

HINTS = {
    "max": " Write greatest(x, y) for the greater of two.",
    "min": " Write least(x, y) for the lesser of two.",
    "mode": " Ask for count_if(x = 1) / count(*) of the value that you mean.",
    "percentile_cont": " Write quantile_cont(x, 0.9).",
    "percentile_disc": " Write quantile_disc(x, 0.9).",
    "product": " Write exp(sum(ln(x))).",
    "geomean": " Write exp(avg(ln(x))).",
    "geometric_mean": " Write exp(avg(ln(x))).",
    "sem": " Write stddev_samp(x) / sqrt(count(x)).",
    "fsum": " Write sum(x).",
    "favg": " Write avg(x).",
    "approx_count_distinct": " Write count(DISTINCT x).",
    "approx_quantile": " Write quantile_cont(x, 0.9).",
    "=": " Types must agree; for NULL write x IS NULL.",
    "avg": " A text or a date has no average.",
    "sum": " A text or a date has no sum.",
    "starts_with": " The second argument is a constant text.",
    "ends_with": " The second argument is a constant text.",
    "contains": " The second argument is a constant text.",
    "+": " Dates cannot be added to; true and false are counted by count_if(x) or avg(x).",
    "-": " For times write date_diff('hour', a, b).",
    "date_diff": " The parts are year, quarter, month, week, day, hour, minute and second.",
    "quantile_cont": " The second argument is a constant from 0 to 1.",
    "quantile_disc": " The second argument is a constant from 0 to 1.",
    "round": " The digits are a whole constant from -15 to 15.",
}
"""Function or operator → what to do, when its arguments do not fit or it is not there."""
