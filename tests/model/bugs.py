"""Deliberate bugs: each is what somebody might well build, and the model must catch it by the invariant that it breaks.

A search that finds nothing proves little unless it is known to find something. Several of these are the protocol with one
sentence of it left out; where a sentence can be left out without a breach, it is not needed.
"""

from typing import NamedTuple


class Bug(NamedTuple):
    breaks: str
    scenario: str
    faults: int
    what: str


BUGS = {
    "links-after-closing": Bug("I2", "links", 0, "finish closes the page, its links are added by a second verb"),
    "ack-first-without-asking": Bug("I1", "kills only", 1, "the frontier acknowledges when it takes a hint, and never asks"),
    "frontier-never-asks": Bug("I1", "late worker", 1, "WAITING URLs without a hint are nobody's"),
    "worker-never-asks": Bug("I1", "late worker", 1, "ROUTED URLs without a hint are nobody's"),
    "complete-when-queues-are-empty": Bug("I7", "late worker", 1, "completion is read off the broker"),
    "no-fence": Bug("I6", "late worker", 1, "verbs look at neither epoch nor lease"),
    "dial-past-lease": Bug("I3", "late worker", 1, "a thawed worker doesn't look at its clock before it dials"),
    "register-without-reap": Bug("I3", "late worker", 1, "an id is given out again while URLs of its former holder are FETCHING"),
    "reap-skips-fetching": Bug("I3", "late worker", 1, "reap frees ROUTED URLs only: the id's next holder is told go again"),
    "reap-leaves-busy": Bug("I3", "late worker", 1, "reap neither marks the dead worker's domains idle nor moves next_at"),
    "reap-keeps-reservation": Bug("I4", "late worker", 1, "reap doesn't free what was reserved"),
    "reap-keeps-entry": Bug("I1", "twins", 1, "the content entry of a reaped or failed page stays: its twin waits for ever"),
    "route-without-reap": Bug("I5", "retry", 1, "route picks a new owner beside a dead one that wasn't reaped yet"),
    "route-ignores-state": Bug("I1", "late worker", 1, "a doubled hint is routed again"),
    "owner-changes": Bug("I5", "retry", 0, "route picks the least loaded worker although the domain has URLs out"),
    "begin-once-only": Bug("I1", "late worker", 1, "begin says closed to a worker whose first answer was lost"),
    "hand-is-a-list": Bug("I3", "late worker", 1, "a worker takes up a URL that it already has, and is told go again"),
    "gate-ignores-busy": Bug("I3", "retry", 0, "begin and knock look at next_at only"),
    "gate-ignores-delay": Bug("I3", "retry", 0, "begin and knock look at busy only"),
    "gate-ignores-not-before": Bug("I3", "defer", 0, "URLs that were routed before a deferral begin in spite of it"),
    "gate-parks-a-retry": Bug(
        "I3", "defer", 1, "a knock for a FETCHING URL parks it; repeated after a lost answer it finds it ROUTED"
    ),
    "busy-has-no-name": Bug("I3", "retry", 1, "finish or leave of one URL ends the busy mark of another"),
    "next-at-from-begin": Bug("I3", "retry", 0, "the delay counts from begin's time, not from the request's start"),
    "finish-without-due": Bug("I1", "links", 0, "finish frees the window and tells nobody"),
    "defer-without-due": Bug("I1", "defer", 0, "defer parks and tells nobody"),
    "pass_up-without-due": Bug("I1", "robots", 0, "pass_up frees the window and tells nobody"),
    "gate-without-due": Bug("I1", "robots", 0, "begin or knock parks a URL before not_before and tells nobody"),
    "park-without-due": Bug("I1", "wide robots", 1, "route parks before not_before with nothing out, and tells nobody"),
    "reap-without-due": Bug("I1", "links", 1, "reap frees the window and tells nobody"),
    "promote-forgets-full": Bug("I1", "crowded", 0, "promote drops a due domain for which no worker has room"),
    "promote-ignores-not-before": Bug("I3", "defer", 0, "promote looks at the window only"),
    "judge-in-two-steps": Bug("I2", "twins", 0, "looking up and entering a content are two verbs"),
    "own-twin": Bug("I2", "twins", 1, "a page's own entry counts as a twin"),
    "twin-of-open-page": Bug("I2", "twins", 0, "a page is closed as the twin of one that isn't stored yet"),
    "budget-at-finish": Bug("I4", "page budget", 0, "begin looks at what is stored, not at what is reserved"),
    "budget-final-at-once": Bug("I4", "page budget", 0, "a full reservation ends the crawl although it may still be freed"),
    "knock-takes-no-bytes": Bug("I4", "bytes for retries", 0, "only begin reserves bytes: a retry has none"),
    "retry-waits-for-bytes": Bug(
        "I1", "bytes for retries", 0, "a FETCHING URL is never told budget: two that wait for a retry wait for ever"
    ),
    "budget-leaves-busy": Bug(
        "I1", "stopped robots", 1, "a knock repeated after a lost answer is told budget, and its reservation stays"
    ),
    "begin-waits-for-itself": Bug(
        "I1", "late robots", 2, "begin counts the bytes that its own URL's knock has reserved, and waits until they are free"
    ),
    "reap-charges-nothing": Bug("I4", "byte budget", 1, "the bytes of a dead worker's requests are forgotten"),
    "bystander-poisoned": Bug("I2", "deadly page", 0, "reap counts a death of whatever was FETCHING, alone or not"),
    "suspect-begun-in-company": Bug("I2", "deadly pages", 0, "a suspect is begun beside others, which may be deadly"),
    "company-for-a-suspect": Bug("I2", "deadly pages", 0, "others are begun beside a suspect, and may be deadly"),
    "past-forgotten": Bug("I1", "deadly page", 0, "to route a URL again forgets that it is a suspect"),
    "pardon-without-end": Bug(
        "I1", "stunning page", 0, "a worker that comes back takes its lapse back each time: the page hangs the next"
    ),
    "robots-is-no-company": Bug("I2", "deadly robots", 0, "robots.txt is asked for beside a suspect, which dies of it"),
    "robots-never-kills": Bug(
        "I1", "deadly robots", 0, "a death while robots.txt is in flight is counted nowhere, so that there is no last one"
    ),
    "rest-forgotten": Bug("I1", "always later", 0, "rests aren't counted: the domain is never given up"),
    "gate-ignores-closed": Bug("I3", "failing domain", 0, "URLs that were routed before their domain was given up begin"),
    "closed-domain-forgets-parked": Bug(
        "I1", "failing domain", 0, "promote closes one URL of a domain that was given up, and forgets the others"
    ),
    "deferrals-forgotten": Bug("I1", "deferrals", 0, "deferrals aren't counted: a URL is parked and fetched for ever"),
    "rank-ignores-state": Bug("I2", "ranked", 0, "rank enters a URL among the parked ones that was closed meanwhile"),
    "shed-takes-held": Bug("I4", "shed", 0, "shed closes what a worker holds"),
    "know-robots-ends-busy": Bug(
        "I3", "robots", 1, "know_robots, which needs no seat, also ends busy: a zombie's frees another's domain"
    ),
    "release-keeps-reservation": Bug("I4", "release", 0, "release doesn't free what was reserved"),
    "release-leaves-busy": Bug("I3", "release", 0, "release neither marks domains idle nor moves next_at"),
    "release-without-due": Bug("I1", "lonely release", 0, "release frees the window and tells nobody"),
    "release-makes-suspects": Bug("I2", "release", 0, "a worker that leaves is taken for one that died"),
    "release-charges-nothing": Bug("I4", "release in budget", 0, "the bytes of the requests that it cut are forgotten"),
    "resume-keeps-leases": Bug("I3", "impatient", 0, "resume reaps workers whose seats stay good"),
    "resume-voids-at-once": Bug(
        "I3", "impatient", 0, "next_at doesn't wait for the voided lease's end: a worker that lives is still asking"
    ),
    "resume-makes-suspects": Bug("I2", "impatient", 0, "what was FETCHING when the operator resumed is a suspect"),
    "end-beside-robots": Bug("I7", "stopped robots", 0, "end looks at what is FETCHING: robots.txt is still in flight"),
}
