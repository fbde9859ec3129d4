"""What a worker holds by the ledger's word and has not in hand: hints that were lost, and what a ledger has forgotten.

A Redis that lost its last second says FETCHING of pages that were closed in it. Nobody works on them, so nobody would let them go:
their domains would be busy with them for ever, and the other URLs of these wait at the gate. They are handed back.
"""

from gossamer.messages import Url
from gossamer.ports.ledger import Ledger
from gossamer.records import Deferral, Seat
from services.worker.agenda import Agenda


async def missing(ledger: Ledger, seat: Seat, agenda: Agenda) -> list[Url]:
    """To be taken up; what of it was FETCHING is PARKED now, and the gate will say so."""
    # In hand until then: a hint that comes meanwhile must not bring into flight what is about to be handed back.
    claimed = agenda.claim(await ledger.held(seat))
    if claimed:
        await ledger.defer(seat, [Deferral(id=url.id) for url in claimed])  # those that are ROUTED are passed over
        for url in claimed:
            agenda.drop(url.id)
    return claimed
