// The leader lease by itself: three voters with terms, votes, promises, rounds, clocks and
// transfers, and nothing else of Raft. lease/README.md argues the rules. Here SPIN tries every
// schedule, and tests/model/run.py drops one rule after the other (the macros in capitals) and
// expects a violation.
//
// What is left out, and why little is lost by it:
// - Messages are lost, late, doubled and out of order because what was sent stays, and may be taken
//   at any later step or never. An append says how much of its round's lease is left, and so does an
//   acknowledgement: both grow old on the holder's clock. So no round needs a number, and neither
//   rounds nor time have a bound. A vote is told when the candidate looks, now or later; a request
//   for one is lost when its candidate gives up.
// - The log is its last entry (term, index), which names all before it. A leader appends one entry
//   when it is elected, and one after a transfer that failed. News of a commit never arrive.
// - A leader and one other are a quorum of three: that there is one other is kept as a bit.
// - There is no pre-vote, which binds nobody, and no timer: who may campaign does so at any time,
//   and who leads may leave the role at any time.
// - What has to be durable before a message leaves is durable at once. A crash is told of when the
//   node is back; while it is down it takes no steps.
//
// Clocks: a tick of true time moves each by one or two units, anew each time, so rho is 1/3 and U is
// D / 2. The clock that a promise ages on may also stand still (suspend). Node 0 has D = 4, the
// others D = 2. A promise lives while any of it is left and is made for an even number of units: so
// it is counted in pairs of units, of which a tick takes one or none.
//
// Bounds: TERMS; one transfer in a term.

#ifndef TERMS
#define TERMS 3
#endif
#define NOBODY 3
#define MAX(a, b) ((a) > (b) -> (a) : (b))

#define PAIRS(i) ((i) == 0 -> 2 : 1)  // of units in its D
#ifdef DROP_DRIFT_MARGIN
#define U(i) (2 * PAIRS(i))
#define WORTH 4
#else
#define U(i) PAIRS(i)
#define WORTH 2
#endif

mtype = { follower, candidate, leader };

// What is durable.
byte term[3];
bit voted[3];             // in this term
byte holder[3] = NOBODY;  // of the promise; with its term it outlives a crash, and its own end
byte promised[3];         // the promise's term
byte last_term[3];
byte last_index[3];

// What a crash takes.
mtype role[3] = follower;
byte until[3];    // pairs of units that are left of the promise, on this node's clock
bit gone[3];      // the process that it promised has ended, and it may learn that at any time, or never
#ifdef NOTICE_OF_ANY_PROCESS
bit crashed[3];
#endif
bit granted[3];   // candidate: another voter has voted for it
bit by_token[3];  // candidate: its request carries the token (term - 1, itself, its last index)
byte lease[3];    // leader: units that are left of the quorum value of the ends
byte stage[3];    // leader: see below
bit stored[3];    // leader: another voter has its last entry

// A leader's stage.
#define young 0   // its own entry is not committed
#define open 1    // it is, and the lease is shown
#define passing 2 // a token is out: nothing is appended
#define ended 3   // the transfer has failed: an entry beyond the token is appended
#define again 4   // and committed, and the lease is shown

// On its way. Bit w of a set: a message whose round's lease has w units left. Bit 0 renews a promise
// all the same.
byte sent[3];         // appends that node i sent as the leader of term `led`
byte led[3];
byte acked[3];        // acknowledgements for it
byte timeout_now[3];  // for node i, in the term that it is in: the token's index; 0: none

// The highest term that has committed an entry.
byte committed;

#ifdef LEASE_BEFORE_OWN_TERM
#define SHOWN(i) (lease[i] > 0 && role[i] == leader && stage[i] != passing && stage[i] != ended)
#else
#define SHOWN(i) (lease[i] > 0 && (stage[i] == open || stage[i] == again))
#endif
#define LEADS(i) (role[i] == leader)
#define LIVES(i) (until[i] > 0)
#define PROMISED_TO(i, l) (holder[i] == l && promised[i] == led[l])
#define UP_TO_DATE(c, v) \
  (last_term[c] > last_term[v] || (last_term[c] == last_term[v] && last_index[c] >= last_index[v]))

#ifdef SYMMETRY
// Nodes 1 and 2 are alike: of two states that only exchange them one will do.
#define KEY_OF_LOG(i) ((term[i] * 8 + last_term[i]) * 8 + last_index[i])
#define KEY_OF_PROMISE(i) (((promised[i] * 4 + until[i]) * 2 + voted[i]) * 2 + (holder[i] == 0))
#define KEY_OF_ROLE(i) (((role[i] * 8 + stage[i]) * 8 + sent[i]) * 2 + granted[i])
#define KEY(i) ((KEY_OF_LOG(i) * 128 + KEY_OF_PROMISE(i)) * 512 + KEY_OF_ROLE(i))
#define EXCHANGE(array) spare = array[1]; array[1] = array[2]; array[2] = spare
#define OTHER(name) (name == 1 -> 2 : (name == 2 -> 1 : name))
hidden byte spare;
inline exchange() {
  EXCHANGE(term);
  EXCHANGE(voted);
  EXCHANGE(holder);
  EXCHANGE(promised);
  EXCHANGE(last_term);
  EXCHANGE(last_index);
  EXCHANGE(role);
  EXCHANGE(until);
  EXCHANGE(gone);
#ifdef NOTICE_OF_ANY_PROCESS
  EXCHANGE(crashed);
#endif
  EXCHANGE(granted);
  EXCHANGE(by_token);
  EXCHANGE(lease);
  EXCHANGE(stage);
  EXCHANGE(stored);
  EXCHANGE(sent);
  EXCHANGE(led);
  EXCHANGE(acked);
  EXCHANGE(timeout_now);
  holder[0] = OTHER(holder[0]);
  holder[1] = OTHER(holder[1]);
  holder[2] = OTHER(holder[2])
}
#endif

// ---- What no state may show ----

inline check_lease(i, a, b) {
  // No higher term has committed, and this leader knows of all that lower ones have.
  assert(!SHOWN(i) || committed == led[i] || committed == 0);
#ifndef READERS
  // The promise of another voter lives; the holder's own is the lease itself.
  assert(!SHOWN(i) || (LIVES(a) && PROMISED_TO(a, i)) || (LIVES(b) && PROMISED_TO(b, i)));
#endif
  // What cannot matter any more is forgotten, so that states which act alike are one.
  if
  :: !LEADS(i) && lease[i] == 0 && term[a] > led[i] && term[b] > led[i] -> sent[i] = 0; led[i] = 0
  :: else
  fi
}

inline check() {
  assert(SHOWN(0) + SHOWN(1) + SHOWN(2) <= 1);
  check_lease(0, 1, 2);
  check_lease(1, 0, 2);
  check_lease(2, 0, 1);
#ifdef SYMMETRY
  if
  :: KEY(1) < KEY(2) -> exchange()
  :: else
  fi
#endif
}

// ---- Terms and roles ----

// Becomes a follower; a leader's loss of the lease is its first effect.
inline leave(i) {
  role[i] = follower;
  granted[i] = 0;
  by_token[i] = 0;
  stored[i] = 0;
#ifndef ACKNOWLEDGED_IN_ANOTHER_TERM
  acked[i] = 0;
#endif
  sent[i] = (sent[i] > 0 -> 1 : 0);
#ifndef LEASE_KEPT_AFTER_STEP_DOWN
  lease[i] = 0;
  stage[i] = young;
#endif
}

inline adopt(i, t) {
  leave(i);
  term[i] = t;
  voted[i] = 0;
#ifndef TOKEN_OF_ANY_TERM
  timeout_now[i] = 0;
#endif
#ifdef PROMISE_TIED_TO_VOTE
  until[i] = 0;
#endif
}

// A promise binds the own campaign too.
#ifdef CAMPAIGN_WHILE_PROMISED
#define FREE(i) true
#else
#define FREE(i) (!LIVES(i))
#endif

#define CAMPAIGNS(i) (!LEADS(i) && term[i] < TERMS && FREE(i))
inline campaign(i, token) {
  adopt(i, term[i] + 1);
  role[i] = candidate;
  voted[i] = 1;
  by_token[i] = token;
#ifdef TOKEN_OF_ANY_TERM
  timeout_now[i] = 0;
#endif
}

#define WINS(i) (role[i] == candidate && granted[i])
inline win(i) {
  assert(!(LEADS(0) && term[0] == term[i]) && !(LEADS(1) && term[1] == term[i]) &&
         !(LEADS(2) && term[2] == term[i]));
  leave(i);
  role[i] = leader;
  led[i] = term[i];
  sent[i] = 0;
  lease[i] = 0;
  stage[i] = young;
#ifdef ACKNOWLEDGED_IN_ANOTHER_TERM
  acked[i] = (acked[i] > 0 -> 1 : 0);
#endif
#ifdef ACKNOWLEDGED_BY_DEFAULT
  lease[i] = U(i);
#endif
  // Its own promises were to lower terms.
  until[i] = 0;
  holder[i] = NOBODY;
  promised[i] = 0;
  last_term[i] = term[i];
  last_index[i]++;
}

// The remembered D is the larger of the own and the one that came with the promise.
#ifdef REMEMBERED_D_FORGOTTEN
#define REMEMBERED(i) PAIRS(i)
#else
#define REMEMBERED(i) MAX(PAIRS(i), PAIRS(holder[i]))
#endif

inline crash(i) {
#ifdef NOTICE_OF_ANY_PROCESS
  crashed[i] = 1;
#endif
  if
  :: holder[(i + 1) % 3] == i -> gone[(i + 1) % 3] = 1
  :: else
  fi;
  if
  :: holder[(i + 2) % 3] == i -> gone[(i + 2) % 3] = 1
  :: else
  fi;
#ifdef LEADERSHIP_RESUMED
  if
  :: LEADS(i) -> stored[i] = 0; acked[i] = 0
  :: else -> leave(i)
  fi;
#else
  leave(i);
#endif
  lease[i] = 0;
  stage[i] = young;
#ifdef VOTE_NOT_DURABLE
  voted[i] = 0;
#endif
#ifdef PROMISE_LOST_AT_RESTART
  until[i] = 0;
#else
  if
  :: holder[i] != NOBODY -> until[i] = REMEMBERED(i)
  :: else
  fi
#endif
}

// A notice, or a message of the next process: the promise ends with the process that holds it.
#ifdef NOTICE_OF_ANY_PROCESS
#define LEARNS_OF_END(i) (LIVES(i) && holder[i] != NOBODY && crashed[holder[i]])
#else
#define LEARNS_OF_END(i) (LIVES(i) && gone[i])
#endif

inline learn_of_end(i) {
  until[i] = 0
}

// ---- A node i and a candidate c ----

#define PASSES_AS_HOLDER(i, c) (holder[i] == c && term[c] > promised[i])
#ifdef TOKEN_OF_ANY_TERM
#define PASSES_BY_TOKEN(i, c) by_token[c]
#else
#define PASSES_BY_TOKEN(i, c) (by_token[c] && promised[i] == term[c] - 1)
#endif
#ifdef NO_PROMISE
#define BOUND(i, c) false
#else
#define BOUND(i, c) (LIVES(i) && !PASSES_AS_HOLDER(i, c) && !PASSES_BY_TOKEN(i, c))
#endif
#ifdef LEADER_GRANTS_VOTES
#define HOLDS_LEASE(i) false
#else
#define HOLDS_LEASE(i) (LEADS(i) && lease[i] > 0)
#endif

#define GRANTS(i, c) \
  (role[c] == candidate && (term[c] > term[i] || (term[c] == term[i] && !voted[i])) && \
   UP_TO_DATE(c, i) && !BOUND(i, c) && !HOLDS_LEASE(i))
inline grant(i, c) {
  if
  :: term[c] > term[i] -> adopt(i, term[c])
  :: else -> leave(i)
  fi;
  voted[i] = 1;
  granted[c] = 1;
#ifdef PROMISE_TIED_TO_VOTE
  until[i] = 0;
#endif
}

// The term of an answer, or of a request that is refused for another reason than a promise. (A
// promise that is a flag of the vote ends with the term, so a refusal must not have raised it.)
#ifdef PROMISE_TIED_TO_VOTE
#define HEEDS(i, o) (LEADS(i) || !LIVES(i) || role[o] == candidate)
#else
#define HEEDS(i, o) (LEADS(i) || !LIVES(i) || (role[o] == candidate && PASSES_AS_HOLDER(i, o)))
#endif
#define LEARNS(i, o) (term[o] > term[i] && HEEDS(i, o))

// ---- A node i and a leader l: rounds ----

#define BEGINS(l) (LEADS(l) && !((sent[l] >> U(l)) & 1))
inline begin_round(l) {
  sent[l] = sent[l] | (1 << U(l));
#ifdef SELF_IS_A_QUORUM
  lease[l] = U(l);
#endif
}

// An acknowledgement of a round that has nothing left is of no use, unless rounds are mixed up.
#if defined(NEWEST_ROUND_CREDITED) || defined(LEASE_FROM_RECEIPT) || \
    defined(ACKNOWLEDGED_IN_ANOTHER_TERM)
#define USEFUL(w) true
#define SHIFTED(set) ((set >> 1) | (set & 1))
#else
#define USEFUL(w) (w > 0)
#define SHIFTED(set) ((set >> 1) & 254)
#endif

inline acknowledge(l, w) {
  if
  :: LEADS(l) && term[l] == led[l] && USEFUL(w) -> acked[l] = acked[l] | (1 << w)
  :: else
  fi
}

#ifdef CARRIED_D_IGNORED
#define PROMISE(i, l) PAIRS(i)
#else
#define PROMISE(i, l) MAX(PAIRS(i), PAIRS(l))
#endif

#define HEARS(i, l, w) \
  (((sent[l] >> w) & 1) && led[l] >= term[i] && !(LEADS(i) && led[l] == term[i]))
inline hear(i, l, w) {
  if
  :: led[l] > term[i] -> adopt(i, led[l])
  :: else -> leave(i)
  fi;
#ifndef ACKNOWLEDGED_WITHOUT_PROMISE
  // A leader of a higher term replaces the promise, even by a shorter one.
  gone[i] = 0;
  until[i] = (PROMISED_TO(i, l) -> MAX(until[i], PROMISE(i, l)) : PROMISE(i, l));
#endif
  holder[i] = l;
  promised[i] = led[l];
  acknowledge(l, w);
}

// An append of a lower term is refused.
#define REFUSES(i, l, w) (LEADS(l) && ((sent[l] >> w) & 1) && led[l] < term[i])

// The rounds of another term are numbered alike, so its answers would be taken for newer ones.
#define NEWEST(l) (sent[l] >= 4 -> 2 : (sent[l] >= 2 -> 1 : 0))
#ifdef LEASE_FROM_RECEIPT
#define CREDIT(l, w) U(l)
#else
#if defined(NEWEST_ROUND_CREDITED) || defined(ACKNOWLEDGED_IN_ANOTHER_TERM)
#define CREDIT(l, w) NEWEST(l)
#else
#define CREDIT(l, w) w
#endif
#endif

#define COUNTS(l, w) (LEADS(l) && ((acked[l] >> w) & 1))
inline count(l, w) {
  lease[l] = MAX(lease[l], CREDIT(l, w));
  // What is worth no more has no use left.
  acked[l] = (acked[l] >> (w + 1)) << (w + 1);
}

// ---- A node i and a leader l: entries ----

#define TAKES_ENTRIES(i, l) \
  (LEADS(l) && term[i] == led[l] && PROMISED_TO(i, l) && \
   !(stored[l] && last_term[i] == last_term[l] && last_index[i] == last_index[l]))
inline take_entries(i, l) {
  last_term[i] = last_term[l];
  last_index[i] = last_index[l];
  stored[l] = 1;
}

#define COMMITS(l) (LEADS(l) && stored[l] && (stage[l] == young || stage[l] == ended))
inline commit(l) {
  stage[l] = (stage[l] == young -> open : again);
  committed = MAX(committed, term[l]);
}

// ---- A leader l transfers the leadership to i ----

#define ISSUES(l, i) (LEADS(l) && stage[l] == open && term[i] == term[l] && UP_TO_DATE(i, l))
inline issue(l, i) {
  timeout_now[i] = last_index[l];
#ifndef TIMEOUT_NOW_UNDER_LEASE
  stage[l] = passing;
#endif
}

#ifdef TOKEN_OF_ANY_INDEX
#define FITS(i) true
#else
#define FITS(i) (timeout_now[i] == last_index[i])
#endif
#ifdef TOKEN_OF_ANY_TERM
#define LETS_PASS(i) true
#else
#define LETS_PASS(i) (FREE(i) || promised[i] == term[i])
#endif
#define FOLLOWS(i) (timeout_now[i] > 0 && FITS(i) && !LEADS(i) && term[i] < TERMS && LETS_PASS(i))

#define GIVES_UP(l) (LEADS(l) && stage[l] == passing)
inline give_up(l) {
  last_index[l]++;
  stored[l] = 0;
#ifdef LEASE_BEFORE_TOKEN_IS_DEAD
  stage[l] = again;
#else
  stage[l] = ended;
#endif
}

// ---- Time ----

inline age(i) {
  lease[i] = (lease[i] > 0 -> lease[i] - 1 : 0);
  sent[i] = (sent[i] >> 1) | (sent[i] & 1);
  acked[i] = SHIFTED(acked[i]);
}

inline tick(i) {
  if
  :: lease[i] > 0 || sent[i] > 1 || acked[i] > 1 ->
    if
#ifdef HOLDERS_CLOCK_SLEEPS
    :: skip
#endif
    :: age(i)
    :: age(i); age(i)
    fi
  :: else
  fi;
  if
  :: LIVES(i) ->
    if
    :: skip
    :: until[i]--
    fi
  :: else
  fi
}

// ---- The steps ----

#define me _pid
#define HEARS_STEP(o, w) \
  d_step { HEARS(me, o, w) -> hear(me, o, w); printf("%d hears %d, worth %d\n", me, o, w); check() }
#define COUNTS_STEP(w) \
  d_step { COUNTS(me, w) -> count(me, w); printf("%d is acknowledged, worth %d\n", me, w); check() }
#define REFUSES_STEP(o, w) \
  d_step { REFUSES(me, o, w) -> acknowledge(o, w); printf("%d refuses %d\n", me, o); check() }

inline with(o) {
  if
  :: d_step { GRANTS(me, o) -> grant(me, o); printf("%d votes for %d\n", me, o); check() }
  :: d_step { LEARNS(me, o) -> adopt(me, term[o]); printf("%d learns %d's term\n", me, o); check() }
  :: d_step { TAKES_ENTRIES(me, o) -> take_entries(me, o); printf("%d stores for %d\n", me, o); check() }
  :: d_step { ISSUES(me, o) -> issue(me, o); printf("%d transfers the leadership to %d\n", me, o); check() }
  :: HEARS_STEP(o, 0)
  :: HEARS_STEP(o, 1)
  :: HEARS_STEP(o, 2)
#if WORTH > 2
  :: HEARS_STEP(o, 3)
  :: HEARS_STEP(o, 4)
#endif
#ifdef REFUSAL_COUNTS
  :: REFUSES_STEP(o, 1)
  :: REFUSES_STEP(o, 2)
#endif
  fi
}

// First, so that its numbers are 0, 1 and 2.
active [3] proctype node() {
  do
  :: d_step { CAMPAIGNS(me) -> campaign(me, 0); printf("%d campaigns\n", me); check() }
  :: d_step { FOLLOWS(me) -> campaign(me, 1); printf("%d campaigns by token\n", me); check() }
  :: d_step { WINS(me) -> win(me); printf("%d leads term %d\n", me, term[me]); check() }
  :: d_step { BEGINS(me) -> begin_round(me); printf("%d begins a round\n", me); check() }
  :: COUNTS_STEP(0)
  :: COUNTS_STEP(1)
  :: COUNTS_STEP(2)
#if WORTH > 2
  :: COUNTS_STEP(3)
  :: COUNTS_STEP(4)
#endif
  :: d_step { COMMITS(me) -> commit(me); printf("%d commits\n", me); check() }
  :: d_step { GIVES_UP(me) -> give_up(me); printf("%d ends the transfer\n", me); check() }
  :: d_step { LEADS(me) -> leave(me); printf("%d leaves its role\n", me); check() }
  :: d_step { crash(me); printf("%d crashes and is back\n", me); check() }
  :: d_step { LEARNS_OF_END(me) -> learn_of_end(me); printf("%d learns of the end\n", me); check() }
  :: with((me + 1) % 3)
  :: with((me + 2) % 3)
  od
}

active proctype time() {
  do
  :: atomic {
      tick(0);
      tick(1);
      tick(2);
      d_step {
        printf("a tick: leases %d %d %d, promises %d %d %d\n", lease[0], lease[1], lease[2],
               until[0], until[1], until[2]);
        check()
      }
    }
  od
}
