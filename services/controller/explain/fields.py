"""An explanation as one JSON object, for programs. docs/explain.md tells what each key means; a test compares."""

import json

from gossamer.ports.blobs import BlobRef
from gossamer.records import DomainRecord
from services.controller.engines.deciding import Band, Check
from services.controller.explain import Explanation, Known, Unusable
from services.controller.explain.budgets import shares
from services.controller.explain.verdict import verdict


def explain_json(found: Explanation | Unusable) -> str:
    fields = _unusable(found) if isinstance(found, Unusable) else _fields(found)
    return json.dumps(fields, indent=1) + "\n"


def _unusable(found: Unusable) -> dict[str, object]:
    return {
        "given": found.text,
        "url": None,
        "verdict": verdict(found),
        "crawl": None if found.crawl is None else found.crawl.place.id,
        "refused": found.reason if found.seen else None,
    }


def _fields(found: Explanation) -> dict[str, object]:
    ruling = found.ruling
    return {
        "given": found.text,
        "url": found.url.url,
        "identity": found.identity,
        "left_out": list(found.left_out),
        "id": found.url.id.hex(),
        "verdict": verdict(found),
        "crawl": None if found.crawl is None else found.crawl.place.id,
        "seed": found.is_seed,
        "address": _check(ruling.address),
        "scope": _check(ruling.scope),
        "shape": _check(ruling.shape),
        "robots": _check(ruling.robots),
        "crawl_delay_s": ruling.crawl_delay_s,
        "refused": found.refused,
        "known": None if found.known is None else _known(found.known),
        "domain": None if found.domain is None else _domain(found.domain, found.now),
        "budgets": [{"rule": each.rule.name.lower(), "count": each.count, "most": each.most} for each in shares(found)],
    }


def _check(check: Check) -> dict[str, object]:
    return {"passes": check.passes, "why": check.why}


def _known(known: Known) -> dict[str, object]:
    record, facts = known.record, known.record.facts
    return {
        "state": record.state.name.lower(),
        "outcome": record.outcome,
        "reason": record.reason,
        "status": None if facts is None else facts.status,
        "title": None if facts is None else facts.title,
        "flags": [] if facts is None else list(facts.flags),
        "took_s": None if facts is None else facts.took_s,
        "stored": None if facts is None or facts.blob is None else _blob(facts.blob),
        "twin": None if known.twin is None else known.twin.url.url,
        "similarity": None if facts is None else facts.similarity,
        "depth": record.url.depth,
        "hops": record.url.hop,
        "parents": [each.url.url for each in known.parents],
        "priority": record.priority,
        "band": _band(known.band),
        "worker": record.worker,
        "deferrals": record.deferrals,
        "deaths": record.deaths,
        "suspect": record.suspect,
        "added_at": record.added_at,
        "changed_at": record.changed_at,
    }


def _blob(blob: BlobRef) -> dict[str, object]:
    return {"segment": blob.segment, "offset": blob.offset, "length": blob.length, "sha256": blob.sha256.hex()}


def _band(band: Band) -> dict[str, object]:
    return {"number": band.number, "of": band.of, "first": band.first, "last": band.last}


def _domain(domain: DomainRecord, now: float) -> dict[str, object]:
    """Times to come are told from now: who reads this need not have the ledger's clock."""
    return {
        "name": domain.name,
        "owner": domain.owner,
        "out": domain.out,
        "parked": domain.parked,
        "stored": domain.stored,
        "busy": domain.busy is not None,
        "delay_s": domain.delay_s,
        "next_in_s": round(max(domain.next_at - now, 0.0), 3),
        "left_alone_s": round(max(domain.not_before - now, 0.0), 3),
        "failures": domain.failures,
        "rests": domain.rests,
        "closed": domain.closed,
    }
