/* The engine for programs in C, and for every language that can call C: one replica, as
 * leasehold/node/node.h describes it.
 *
 * Functions return a status of leasehold_status. Where a function takes a leasehold_error, it may
 * be NULL; a status other than LEASEHOLD_OK fills it with a sentence that says what to do.
 * Durations are in nanoseconds. Texts are UTF-8 and end in a zero byte. Numbers of nodes are above
 * 0; as a result, 0 means no node.
 *
 * Threads: a leasehold_node may be used by any number of threads. Callbacks run on threads of the
 * library; each says on which. They must not call functions that wait, nor leasehold_node_close().
 *
 * The interface only grows: functions are added, and members at the end of the structures that
 * begin with `size`. The library is libleasehold.so.0. Do not load it into a program that also
 * links the C++ library. */
#ifndef LEASEHOLD_C_LEASEHOLD_H
#define LEASEHOLD_C_LEASEHOLD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As in "0.2.0". It stays valid. */
const char* leasehold_version(void);

enum leasehold_status {
  LEASEHOLD_OK = 0,
  /* It was not done and will not be: safe to try again. */
  LEASEHOLD_DROPPED = 1,
  /* It may have been done, or may still be. */
  LEASEHOLD_UNKNOWN = 2,
  /* It was not done, and would be refused again. */
  LEASEHOLD_REFUSED = 3,
  /* The kinds of errors. */
  LEASEHOLD_INVALID_ARGUMENT = 10,   /* the caller's value is wrong */
  LEASEHOLD_MALFORMED = 11,          /* bytes do not follow their format */
  LEASEHOLD_UNSUPPORTED_FORMAT = 12, /* of a version that this build does not know */
  LEASEHOLD_CORRUPTED = 13,          /* stored bytes are damaged */
  LEASEHOLD_WRONG_CLUSTER = 14,      /* the directory belongs to another cluster or node */
  LEASEHOLD_IN_USE = 15,             /* another process has the directory or the port */
  LEASEHOLD_NOT_FOUND = 16,
  LEASEHOLD_UNSUPPORTED = 17,
  LEASEHOLD_IO = 18, /* the operating system refused an operation */
  LEASEHOLD_OVERLOADED = 19,
  LEASEHOLD_UNAVAILABLE = 20,
  LEASEHOLD_TIMED_OUT = 21,
  LEASEHOLD_STOPPED = 22,
  LEASEHOLD_REMOVED = 23,        /* this node is not a member of its group any more */
  LEASEHOLD_CLOCK_DISRUPTED = 24 /* this machine was stopped, and its clocks may not show it */
};

typedef struct leasehold_error {
  int status;
  char text[1020]; /* cut off if it is longer */
} leasehold_error;

/* ---- The state machine ---------------------------------------------------------------------- */

typedef struct leasehold_command {
  uint64_t index;    /* its place in the log */
  uint64_t term;     /* of its entry */
  uint64_t origin;   /* the node whose caller proposed it; 0: not known */
  const void* bytes; /* as proposed; valid during the call */
  size_t size;
} leasehold_command;

/* The results of one call of apply(). */
typedef struct leasehold_results leasehold_results;
/* Copies the result of the command of that place. What is not set is empty. */
void leasehold_results_set(leasehold_results* results, size_t place, const void* bytes,
                           size_t size);

/* The state at one instant, which never changes. */
typedef struct leasehold_snapshot {
  void* context;
  uint64_t last; /* the last index whose effect is in it */
  uint64_t size; /* bytes, above 0 */
  /* Exactly `bytes` bytes from `offset` on. Any thread, one call at a time. */
  int (*read)(void* context, uint64_t offset, void* to, size_t bytes, leasehold_error* error);
  /* Called once, when it is not needed any more; may be NULL. Any thread. */
  void (*release)(void* context);
} leasehold_snapshot;

/* A deterministic state machine. Every replica applies the same commands in the same order. The
 * functions may call leasehold_error_set(), and return LEASEHOLD_OK or the status of an error. */
typedef struct leasehold_machine {
  size_t size; /* sizeof(leasehold_machine) */
  void* context;
  /* The index of the last command whose effect survives a crash; 0 when empty. Commands above it
   * are applied again after a start. */
  uint64_t (*durable_index)(void* context);
  /* Applies `count` committed commands; `last` is the index of the run's last entry, which may be
   * none of them, and `count` may be 0. Readers that come later have to see the effect. One thread,
   * "lh-apply". A wrong command has a result that says so; it is never skipped. */
  void (*apply)(void* context, const leasehold_command* commands, size_t count, uint64_t last,
                leasehold_results* results);
  /* Without the next three (NULL, all of them) the log is never cut, and a member that has lost its
   * data cannot come back. The first two run on "lh-snap", while apply() runs. */
  /* Makes everything applied before the call durable; `index`: the new durable index. */
  int (*make_durable)(void* context, uint64_t* index, leasehold_error* error);
  /* The applied state, at or above the last result of make_durable(). */
  int (*take_snapshot)(void* context, leasehold_snapshot* snapshot, leasehold_error* error);
  /* Replaces everything by that state, durably on return. On "lh-apply". After a crash before, the
   * old state or the new one is there. */
  int (*install_snapshot)(void* context, const leasehold_snapshot* snapshot,
                          leasehold_error* error);
} leasehold_machine;

/* Fills an error that a callback was given. */
void leasehold_error_set(leasehold_error* error, int status, const char* text);

/* ---- What a node reports --------------------------------------------------------------------- */

enum leasehold_role {
  LEASEHOLD_FOLLOWER = 0,
  LEASEHOLD_PRE_CANDIDATE = 1,
  LEASEHOLD_CANDIDATE = 2,
  LEASEHOLD_LEADER = 3
};

/* Each function may be NULL. One call at a time, on the node's thread, "lh-node": quick, without
 * blocking. */
typedef struct leasehold_observer {
  size_t size; /* sizeof(leasehold_observer) */
  void* context;
  void (*leadership)(void* context, int role, uint64_t term, uint64_t leader);
  /* For people and for background work: a read asks leasehold_read(). */
  void (*lease)(void* context, uint64_t term, int held);
  /* A sentence for the operator's log. */
  void (*notice)(void* context, const char* text);
  /* Called once, when the node can no longer run. Close it. */
  void (*failed)(void* context, int status, const char* text);
} leasehold_observer;

/* ---- A node -----------------------------------------------------------------------------------
 */

/* What a node is started with. One thread at a time. */
typedef struct leasehold_options leasehold_options;
leasehold_options* leasehold_options_new(void);
void leasehold_options_free(leasehold_options* options); /* NULL is nothing */
/* Sets one option, by name and in words; those that may be repeated add to what is there.
 *
 *   id                 this node's number; has to be set
 *   data-dir           made if it does not exist; has to be set
 *   cluster            the group's name ("default")
 *   peer               ID=HOST:PORT of an initial member, this node included; repeated
 *   join               HOST:PORT of a member of the group to join; repeated
 *   listen             HOST:PORT to bind, if not this node's own peer address
 *   lease, heartbeat, max-round-trip, margin, election-timeout
 *                      a number with its unit: 1s, 100ms, 50us, 20ns (leasehold/lease/timing.h)
 *   max-clock-drift    parts per million (100000)
 *   peer-key           a file with the key that all members share
 *   tls-cert, tls-key, tls-ca, tls-crl
 *                      files of this node's certificate and its authority
 *   plain-beyond-loopback   "on": other machines may be peers without any protection
 *   log-tail           bytes of the log that are kept behind the durable state (67108864)
 *   deputy             the program leasehold-deputy, which tells the peers of this process's end
 *   witness            "on": it votes and keeps the log, but no state
 */
int leasehold_options_set(leasehold_options* options, const char* name, const char* value,
                          leasehold_error* error);

typedef struct leasehold_node leasehold_node;
/* Opens or makes the data directory, checks that it belongs to this node, and starts. The functions
 * of `machine` and `observer` (which may be NULL) are copied; what they point to outlives the node.
 * The options may be freed. */
int leasehold_node_open(const leasehold_options* options, const leasehold_machine* machine,
                        const leasehold_observer* observer, leasehold_node** node,
                        leasehold_error* error);
/* Answers every waiting call, ends the node's threads, and frees it. NULL is nothing. */
void leasehold_node_close(leasehold_node* node);
/* Before leasehold_node_close(): takes no new calls, lets those that wait end, and transfers the
 * leadership. LEASEHOLD_TIMED_OUT: not all of it was done. */
int leasehold_node_drain(leasehold_node* node, int64_t timeout_ns, leasehold_error* error);

/* ---- Commands ---------------------------------------------------------------------------------
 */

typedef struct leasehold_reply {
  void* bytes; /* what apply() set; NULL if that is empty */
  size_t size;
  uint64_t index; /* the command's place in the log */
  uint64_t term;
  uint64_t leader; /* not done: a hint where to ask */
} leasehold_reply;
void leasehold_reply_clear(leasehold_reply* reply); /* frees the bytes */

/* Replicates a command, and waits until it is applied at this node. LEASEHOLD_DROPPED,
 * LEASEHOLD_UNKNOWN. `reply` may be NULL; else clear it. An empty command is committed, and not
 * passed to apply(). */
int leasehold_propose(leasehold_node* node, const void* command, size_t size, int64_t timeout_ns,
                      leasehold_reply* reply, leasehold_error* error);
/* Called once, on a thread of the library; `reply` is valid during the call. */
typedef void (*leasehold_proposed)(void* context, int status, const leasehold_reply* reply);
void leasehold_propose_async(leasehold_node* node, const void* command, size_t size,
                             int64_t timeout_ns, leasehold_proposed done, void* context);

/* ---- Reads ------------------------------------------------------------------------------------
 */

enum leasehold_read_mode {
  LEASEHOLD_READ_LEASE = 0,  /* under the leader's lease: no message; without one, as the next */
  LEASEHOLD_READ_QUORUM = 1, /* confirmed by a quorum */
  LEASEHOLD_READ_LOG = 2     /* through the log */
};
typedef struct leasehold_read_point {
  uint64_t index; /* up to which this node has applied, at least */
  int lease;      /* 1: the lease justified it */
  int stale;      /* 1: by its age; not linearizable */
  uint64_t leader;
} leasehold_read_point;
/* Waits until the caller may read its state machine, on its own thread: linearizably, or, with
 * `max_age_ns` above 0, where this node's state is at most that old. A read under this node's own
 * lease waits for nothing and takes no lock. LEASEHOLD_DROPPED: try again. `point` may be NULL. */
int leasehold_read(leasehold_node* node, int mode, int64_t timeout_ns, int64_t max_age_ns,
                   leasehold_read_point* point, leasehold_error* error);
/* Called once, on a thread of the library. */
typedef void (*leasehold_may_read)(void* context, int status, const leasehold_read_point* point);
void leasehold_read_async(leasehold_node* node, int mode, int64_t timeout_ns, int64_t max_age_ns,
                          leasehold_may_read done, void* context);

/* ---- The group --------------------------------------------------------------------------------
 */

typedef struct leasehold_state {
  size_t size; /* sizeof(leasehold_state), set by the caller */
  uint64_t id, term, leader;
  int role;
  int formed; /* 0: it waits for the other initial members, or to be added */
  uint64_t first, last, durable, commit, applied;
  int64_t lease_left_ns; /* 0: no lease here */
  uint64_t members;
} leasehold_state;
int leasehold_node_state(leasehold_node* node, leasehold_state* state, leasehold_error* error);

typedef struct leasehold_member {
  uint64_t id;
  uint64_t match; /* at the leader: the last entry that is durable there */
  int voter;      /* 0: a learner */
  int witness;    /* 1: it keeps no state */
  int connected;  /* with this node */
  char address[260];
} leasehold_member;
/* At most `capacity` members; `count`: how many there are. */
int leasehold_node_members(leasehold_node* node, leasehold_member* members, size_t capacity,
                           size_t* count, leasehold_error* error);

enum leasehold_member_change {
  LEASEHOLD_ADD = 0,     /* as a learner; it has to run, and to join */
  LEASEHOLD_PROMOTE = 1, /* a learner that has caught up becomes a voter */
  LEASEHOLD_DEMOTE = 2,
  LEASEHOLD_REMOVE = 3,
  LEASEHOLD_MOVE = 4, /* another address */
  LEASEHOLD_ADD_WITNESS = 5
};
/* At the leader. `address` is that of ADD, ADD_WITNESS and MOVE, else NULL. LEASEHOLD_DROPPED: it
 * may pass later, or at the leader; LEASEHOLD_REFUSED; LEASEHOLD_UNKNOWN. */
int leasehold_change_member(leasehold_node* node, int change, uint64_t id, const char* address,
                            int64_t timeout_ns, leasehold_error* error);
/* Makes the state machine durable and cuts the log to its tail, which the node does by itself,
 * later. It waits for the disk. LEASEHOLD_UNSUPPORTED: the state machine has no make_durable(). */
int leasehold_cut_log(leasehold_node* node, leasehold_error* error);
/* At the leader: to that voter, or with 0 to the one that is most advanced. */
int leasehold_transfer(leasehold_node* node, uint64_t to, int64_t timeout_ns,
                       leasehold_error* error);

#ifdef __cplusplus
}
#endif

#endif
