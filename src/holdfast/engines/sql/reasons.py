"""Why a part of SQL is refused, and what to write instead, by the name of sqlglot's class."""

from __future__ import annotations

__all__ = ["CLASSES", "HINTS"]

_SUBQUERY = "Subqueries are not allowed: a question is one expression over the columns."
_LIST = "Lists, structs and maps are not allowed: they can grow without bound."
_NAMED = "Columns are written by their names alone, without a table or a field."
_PARAMETER = "Parameters are not allowed. Write the value itself."
_REGULAR = "Regular expressions are not allowed: some take very long. Write x LIKE 'A%'."
_ORDER = "ORDER BY and LIMIT are not allowed in an aggregate. For a quantile write median(x)."
_STAR = "A star is allowed in count(*) alone."
_BITS = "Operators on bits are not allowed: numbers are floats here."
_TEXT = "Texts cannot be joined or built: they could grow without bound."
_STRING = "Text constants are written in plain single quotes."

CLASSES = {
    **dict.fromkeys(["Subquery", "Select", "Exists", "Union", "With", "Table", "Query"], _SUBQUERY),
    **dict.fromkeys(["Any", "All", "SetOperation", "Values"], _SUBQUERY),
    **dict.fromkeys(["Array", "Struct", "Bracket", "Map", "Tuple", "Slice", "List"], _LIST),
    **dict.fromkeys(["Dot", "Identifier"], _NAMED),
    **dict.fromkeys(["Placeholder", "Parameter", "SessionParameter"], _PARAMETER),
    **dict.fromkeys(
        ["RegexpLike", "RegexpILike", "SimilarTo", "Glob", "RegexpFullMatch"], _REGULAR
    ),
    **dict.fromkeys(["Order", "Limit", "WithinGroup", "Ordered"], _ORDER),
    **dict.fromkeys(["Star", "Columns"], _STAR),
    **dict.fromkeys(["BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"], _BITS),
    **dict.fromkeys(["BitwiseLeftShift", "BitwiseRightShift"], _BITS),
    **dict.fromkeys(["DPipe", "Concat", "SafeConcat"], _TEXT),
    **dict.fromkeys(["RawString", "HexString", "ByteString", "UnicodeString"], _STRING),
    **dict.fromkeys(["BitString", "National", "Heredoc"], _STRING),
    "Alias": "Names for results are not allowed.",
    "AtTimeZone": "Time zones are not allowed: timestamps are in UTC.",
    "Cast": (
        "Casts are not allowed: they can fail on some values, and a failure tells of the data."
        " Dates are written DATE '2024-12-31'."
    ),
    "Collate": "Collations are not allowed.",
    "Distinct": "DISTINCT is allowed in count(DISTINCT x) alone.",
    "Escape": "LIKE takes no ESCAPE.",
    "ILike": "ILIKE is not allowed. Write lower(x) LIKE 'a%'.",
    "IgnoreNulls": "Aggregates leave NULL out by themselves. Leave the words out.",
    "IntDiv": "// is not allowed. Write floor(x / y).",
    "Interval": "Intervals are not allowed. Write date_diff('day', a, b) or compare with a DATE.",
    "Kwarg": "Arguments have no names here.",
    "Lambda": "Lambdas are not allowed.",
    "PositionalColumn": "Columns are written by their names alone.",
    "PropertyEQ": "Arguments have no names here.",
    "RespectNulls": "Aggregates leave NULL out by themselves. Leave the words out.",
    "TryCast": "Casts are not allowed. Dates are written DATE '2024-12-31'.",
    "Window": "Window functions are not allowed: a question is one value for each block.",
}
"""sqlglot's class → why it is refused. A class that is not here is refused by its name."""

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
