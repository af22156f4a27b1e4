"""Whether the tables of the ledgers are as they were made, and nothing else acts on them."""

from __future__ import annotations

from holdfast.errors import Damaged
from holdfast.ledger.postgres.sessions import Session
from holdfast.ledger.postgres.statements import FOLLOW, REFUSE
from holdfast.ledger.tables import STOP

__all__ = ["check_catalog"]

# As Postgres itself spells it, from 13 on. NOT NULL is said of columns: 18 lists it twice.
_CATALOG = """
WITH own AS (SELECT * FROM pg_class WHERE relnamespace = 'holdfast'::regnamespace)
SELECT 'table', relname::text,
    concat_ws(' ', relkind, relpersistence, relrowsecurity, relforcerowsecurity)
    FROM own WHERE relkind NOT IN ('i', 't')
UNION ALL
SELECT 'column', concat(relname, '.', attname),
    concat_ws(' ', format_type(atttypid, atttypmod), attcollation::regcollation, attnotnull,
        attidentity, attgenerated, pg_get_expr(adbin, adrelid))
    FROM own JOIN pg_attribute AS a ON attrelid = own.oid AND attnum > 0 AND NOT attisdropped
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE relkind NOT IN ('i', 't')
UNION ALL
SELECT 'constraint', conname::text, concat_ws(' ', convalidated, pg_get_constraintdef(c.oid))
    FROM own JOIN pg_constraint AS c ON conrelid = own.oid AND contype <> 'n'
UNION ALL
SELECT 'index', indexrelid::regclass::text,
    concat_ws(' ', indisvalid, indisready, indislive, pg_get_indexdef(indexrelid))
    FROM own JOIN pg_index ON indrelid = own.oid AND relkind <> 't'
UNION ALL
SELECT 'trigger', tgname::text, concat_ws(' ', tgenabled, pg_get_triggerdef(t.oid))
    FROM own JOIN pg_trigger AS t ON tgrelid = own.oid AND NOT tgisinternal
UNION ALL
SELECT 'function', proname::text, concat_ws(' ', lanname, prosecdef, proconfig, prosrc)
    FROM pg_proc JOIN pg_language AS l ON l.oid = prolang
    WHERE pronamespace = 'holdfast'::regnamespace
UNION ALL
SELECT 'rule', rulename::text, pg_get_ruledef(r.oid)
    FROM own JOIN pg_rewrite AS r ON ev_class = own.oid
UNION ALL
SELECT 'policy', polname::text, relname::text
    FROM own JOIN pg_policy ON polrelid = own.oid
UNION ALL
SELECT 'inheritance', inhrelid::regclass::text, inhparent::regclass::text
    FROM pg_inherits JOIN own ON own.oid IN (inhrelid, inhparent) AND relkind <> 'i'
"""

_LEDGER = {
    "holdout": 'text "C" t',
    "number": "bigint - t",
    "version": "integer - t",
    "kind": 'text "C" t',
    "at": 'text "default" t',
    "question": 'text "C" f',
    "request": 'text "C" f',
    "body": 'text "default" t',
    "previous": 'text "default" t',
    "digest": 'text "default" t',
}
_INDEXES = {
    "format_pkey": "UNIQUE INDEX format_pkey ON holdfast.format USING btree (one)",
    "ledger_pkey": "UNIQUE INDEX ledger_pkey ON holdfast.ledger USING btree (holdout, number)",
    "answers": "INDEX answers ON holdfast.ledger USING btree (holdout, question, number) "
    "WHERE (kind = 'recorded'::text)",
    "requests": "INDEX requests ON holdfast.ledger USING btree (holdout, request, number) "
    "WHERE (request IS NOT NULL)",
}
_TRIGGERS = {
    "ledger_insert": "BEFORE INSERT ON holdfast.ledger "
    "FOR EACH ROW EXECUTE FUNCTION holdfast.follow()",
    "ledger_change": "BEFORE DELETE OR UPDATE OR TRUNCATE ON holdfast.ledger "
    "FOR EACH STATEMENT EXECUTE FUNCTION holdfast.refuse()",
}
_EXPECTED: frozenset[tuple[str, str, str]] = frozenset(
    {
        ("table", "format", "r p f f"),  # a plain table, permanent, without row security
        ("table", "ledger", "r p f f"),
        ("column", "format.one", "integer - t  "),
        ("column", "format.version", "integer - t  "),
        *(("column", f"ledger.{name}", f"{value}  ") for name, value in _LEDGER.items()),
        ("constraint", "format_one_check", "t CHECK ((one = 1))"),
        ("constraint", "format_pkey", "t PRIMARY KEY (one)"),
        ("constraint", "ledger_pkey", "t PRIMARY KEY (holdout, number)"),
        *(("index", f"holdfast.{name}", f"t t t CREATE {it}") for name, it in _INDEXES.items()),
        *(("trigger", name, f"O CREATE TRIGGER {name} {it}") for name, it in _TRIGGERS.items()),
        ("function", "refuse", f"plpgsql f {REFUSE}"),
        ("function", "follow", f"plpgsql f {FOLLOW}"),
    }
)


def check_catalog(session: Session) -> None:
    """Refuse tables, indexes and triggers that are not as they were made."""
    found = {(kind, name, value) for kind, name, value in session.all(_CATALOG)}
    if found != _EXPECTED:
        odd = sorted(found ^ _EXPECTED)[0]
        raise Damaged("The ledger", "its own tables and triggers", " ".join(odd)[:200], STOP)
