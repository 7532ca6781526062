/* The C interface from C11: three nodes in this process, then a fourth one that joins them. */
#include "machine.h"

#include <arpa/inet.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NODES 4
#define CHECK(condition, ...)                         \
  do {                                                \
    if (!(condition)) {                               \
      fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
      fprintf(stderr, "%s: ", #condition);            \
      fprintf(stderr, __VA_ARGS__);                   \
      fprintf(stderr, "\n");                          \
      exit(1);                                        \
    }                                                 \
  } while (0)

static const int64_t kSecond = 1000000000;
static const int64_t kPatience = 20 * kSecond;

/* What an observer was called with. */
struct seen {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int leases, leaderships, notices; /* under mutex */
  int failed;                       /* its status; under mutex */
};

static struct counter counters[NODES];
static struct seen seen[NODES];
static leasehold_node* nodes[NODES];
static char addresses[NODES][64];
static char folder[256];

static void on_leadership(void* context, int role, uint64_t term, uint64_t leader) {
  struct seen* to = context;
  (void)role, (void)term, (void)leader;
  pthread_mutex_lock(&to->mutex);
  ++to->leaderships;
  pthread_mutex_unlock(&to->mutex);
}

static void on_lease(void* context, uint64_t term, int held) {
  struct seen* to = context;
  (void)term;
  pthread_mutex_lock(&to->mutex);
  to->leases += held;
  pthread_mutex_unlock(&to->mutex);
}

static void on_notice(void* context, const char* text) {
  struct seen* to = context;
  (void)text;
  pthread_mutex_lock(&to->mutex);
  ++to->notices;
  pthread_mutex_unlock(&to->mutex);
}

static void on_failed(void* context, int status, const char* text) {
  struct seen* to = context;
  pthread_mutex_lock(&to->mutex);
  to->failed = status;
  fprintf(stderr, "failed: %s\n", text);
  pthread_cond_broadcast(&to->changed);
  pthread_mutex_unlock(&to->mutex);
}

static leasehold_observer observer_of(int node) {
  leasehold_observer observer;
  memset(&observer, 0, sizeof(observer));
  observer.size = sizeof(observer);
  observer.context = &seen[node];
  observer.leadership = on_leadership;
  observer.lease = on_lease;
  observer.notice = on_notice;
  observer.failed = on_failed;
  return observer;
}

static void choose_addresses(void) {
  int sockets[NODES];
  for (int i = 0; i < NODES; ++i) {
    struct sockaddr_in address;
    socklen_t size = sizeof(address);
    memset(&address, 0, sizeof(address));
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockets[i] = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(sockets[i], (struct sockaddr*)&address, size) == 0, "no free port");
    CHECK(getsockname(sockets[i], (struct sockaddr*)&address, &size) == 0, "no name");
    snprintf(addresses[i], sizeof(addresses[i]), "127.0.0.1:%d", ntohs(address.sin_port));
  }
  for (int i = 0; i < NODES; ++i) close(sockets[i]);
}

static void set(leasehold_options* options, const char* name, const char* value) {
  leasehold_error error;
  const int status = leasehold_options_set(options, name, value, &error);
  CHECK(status == LEASEHOLD_OK, "%s: %s", name, error.text);
}

static leasehold_options* options_of(int node) {
  char text[512];
  leasehold_options* options = leasehold_options_new();
  snprintf(text, sizeof(text), "%d", node + 1);
  set(options, "id", text);
  snprintf(text, sizeof(text), "%s/node%d", folder, node + 1);
  set(options, "data-dir", text);
  set(options, "cluster", "counter");
  set(options, "lease", "2s");
  set(options, "heartbeat", "100ms");
  set(options, "log-tail", "0");
  if (node == NODES - 1) {
    set(options, "listen", addresses[node]);
    for (int i = 0; i < NODES - 1; ++i) set(options, "join", addresses[i]);
    return options;
  }
  for (int i = 0; i < NODES - 1; ++i) {
    snprintf(text, sizeof(text), "%d=%s", i + 1, addresses[i]);
    set(options, "peer", text);
  }
  return options;
}

static void open_node(int node) {
  leasehold_error error;
  leasehold_options* options = options_of(node);
  const leasehold_machine machine = counter_machine(&counters[node]);
  const leasehold_observer observer = observer_of(node);
  const int status = leasehold_node_open(options, &machine, &observer, &nodes[node], &error);
  CHECK(status == LEASEHOLD_OK, "node %d: %s", node + 1, error.text);
  leasehold_options_free(options);
}

static void add(int node, const char* amount, const char* expected) {
  leasehold_reply reply;
  leasehold_error error;
  const int status =
      leasehold_propose(nodes[node], amount, strlen(amount), kPatience, &reply, &error);
  CHECK(status == LEASEHOLD_OK, "node %d: %s", node + 1, error.text);
  CHECK(reply.size == strlen(expected) && memcmp(reply.bytes, expected, reply.size) == 0,
        "node %d answered '%.*s'", node + 1, (int)reply.size, (const char*)reply.bytes);
  CHECK(reply.index > 0 && reply.term > 0, "it has no place in the log");
  leasehold_reply_clear(&reply);
  CHECK(reply.bytes == NULL && reply.size == 0, "it was not cleared");
}

static void read_total(int node, int mode, int64_t expected) {
  leasehold_read_point point;
  leasehold_error error;
  const int status = leasehold_read(nodes[node], mode, kPatience, 0, &point, &error);
  CHECK(status == LEASEHOLD_OK, "node %d: %s", node + 1, error.text);
  CHECK(counter_total(&counters[node]) == expected, "node %d has %" PRId64, node + 1,
        counter_total(&counters[node]));
  CHECK(point.index > 0 && !point.stale, "node %d: a read without an index", node + 1);
}

/* A place of nodes, and never one that is not there. */
static int leader(void) {
  const time_t end = time(NULL) + 20;
  while (time(NULL) < end) {
    for (int i = 0; i < NODES; ++i) {
      leasehold_state state;
      memset(&state, 0, sizeof(state));
      state.size = sizeof(state);
      if (nodes[i] == NULL) continue;
      CHECK(leasehold_node_state(nodes[i], &state, NULL) == LEASEHOLD_OK, "no state");
      CHECK(state.id == (uint64_t)i + 1, "it is another node");
      if (state.role == LEASEHOLD_LEADER && state.lease_left_ns > 0) return i;
    }
  }
  CHECK(0, "nobody leads");
  return 0;
}

/* ---- The tests --------------------------------------------------------------------------------
 */

static void wrong_arguments_are_refused(void) {
  leasehold_error error;
  leasehold_options* options = leasehold_options_new();
  const char* const wrong[][2] = {{"id", "0"},
                                  {"id", "one"},
                                  {"id", "1x"},
                                  {"lease", "1"},
                                  {"lease", "-1s"},
                                  {"lease", "s"},
                                  {"peer", "1"},
                                  {"peer", "=a:1"},
                                  {"peer", "1="},
                                  {"witness", "yes"},
                                  {"max-clock-drift", ""},
                                  {"leese", "1s"},
                                  {"lease", "9999999999999s"},
                                  {"log-tail", "1k"}};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    memset(&error, 0, sizeof(error));
    CHECK(leasehold_options_set(options, wrong[i][0], wrong[i][1], &error) ==
              LEASEHOLD_INVALID_ARGUMENT,
          "%s=%s", wrong[i][0], wrong[i][1]);
    CHECK(error.status == LEASEHOLD_INVALID_ARGUMENT && strstr(error.text, wrong[i][0]) != NULL,
          "it says '%s'", error.text);
  }
  CHECK(leasehold_options_set(NULL, "id", "1", NULL) == LEASEHOLD_INVALID_ARGUMENT, "no options");
  CHECK(leasehold_options_set(options, "id", NULL, NULL) == LEASEHOLD_INVALID_ARGUMENT, "no value");

  leasehold_node* node = (leasehold_node*)&error;
  leasehold_machine machine = counter_machine(&counters[0]);
  CHECK(leasehold_node_open(options, &machine, NULL, &node, &error) == LEASEHOLD_INVALID_ARGUMENT,
        "without an id: %s", error.text);
  CHECK(node == NULL, "it is set");
  machine.size = 8;
  CHECK(leasehold_node_open(options, &machine, NULL, &node, &error) == LEASEHOLD_INVALID_ARGUMENT &&
            strstr(error.text, "leasehold_machine") != NULL,
        "of another size: %s", error.text);
  machine = counter_machine(&counters[0]);
  machine.make_durable = NULL;
  CHECK(leasehold_node_open(options, &machine, NULL, &node, &error) == LEASEHOLD_INVALID_ARGUMENT &&
            strstr(error.text, "make_durable") != NULL,
        "half of the snapshots: %s", error.text);
  leasehold_options_free(options);
  leasehold_options_free(NULL);
  leasehold_node_close(NULL);
  CHECK(leasehold_propose(NULL, "1", 1, kSecond, NULL, NULL) == LEASEHOLD_INVALID_ARGUMENT, "NULL");
  CHECK(leasehold_read(NULL, 0, kSecond, 0, NULL, NULL) == LEASEHOLD_INVALID_ARGUMENT, "NULL");
}

static void a_long_error_is_cut_off(void) {
  leasehold_error error;
  char text[3000];
  memset(text, 'x', sizeof(text) - 1);
  text[sizeof(text) - 1] = '\0';
  leasehold_error_set(&error, LEASEHOLD_IO, text);
  CHECK(strlen(error.text) == sizeof(error.text) - 1, "%zu", strlen(error.text));
  leasehold_error_set(NULL, LEASEHOLD_IO, text);
}

static void commands_and_reads_at_every_node(void) {
  add(0, "5", "5");
  add(1, "-2", "3");
  add(2, "10", "13");
  add(0, "a text that is too long for any number", "error: say a number");
  add(0, "", "");
  for (int node = 0; node < 3; ++node) {
    for (int mode = LEASEHOLD_READ_LEASE; mode <= LEASEHOLD_READ_LOG; ++mode) {
      read_total(node, mode, 13);
    }
  }
  CHECK(leasehold_read(nodes[0], 7, kSecond, 0, NULL, NULL) == LEASEHOLD_INVALID_ARGUMENT, "mode");
  leasehold_read_point point;
  const int first = leader();
  CHECK(leasehold_read(nodes[first], LEASEHOLD_READ_LEASE, kPatience, 0, &point, NULL) ==
                LEASEHOLD_OK &&
            point.lease == 1,
        "the leader reads without its lease");
  CHECK(leasehold_read(nodes[(first + 1) % 3], LEASEHOLD_READ_LEASE, kPatience, 3600 * kSecond,
                       &point, NULL) == LEASEHOLD_OK &&
            point.stale == 1,
        "a state of less than an hour is too old");
}

struct waiter {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int answers;    /* under mutex */
  int status;     /* of the last one; under mutex */
  int64_t result; /* under mutex */
};

static void wait_for(struct waiter* waiter, int answers) {
  pthread_mutex_lock(&waiter->mutex);
  while (waiter->answers < answers) pthread_cond_wait(&waiter->changed, &waiter->mutex);
  pthread_mutex_unlock(&waiter->mutex);
}

static void on_proposed(void* context, int status, const leasehold_reply* reply) {
  struct waiter* waiter = context;
  char text[32] = "";
  if (reply->size < sizeof(text) && reply->size > 0) memcpy(text, reply->bytes, reply->size);
  pthread_mutex_lock(&waiter->mutex);
  ++waiter->answers;
  waiter->status = status;
  waiter->result = strtoll(text, NULL, 10);
  pthread_cond_broadcast(&waiter->changed);
  pthread_mutex_unlock(&waiter->mutex);
}

static void on_may_read(void* context, int status, const leasehold_read_point* point) {
  struct waiter* waiter = context;
  pthread_mutex_lock(&waiter->mutex);
  ++waiter->answers;
  waiter->status = status;
  waiter->result = (int64_t)point->index;
  pthread_cond_broadcast(&waiter->changed);
  pthread_mutex_unlock(&waiter->mutex);
}

static void calls_that_do_not_wait(void) {
  struct waiter waiter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0};
  for (int i = 0; i < 100; ++i) {
    leasehold_propose_async(nodes[i % 3], "1", 1, kPatience, on_proposed, &waiter);
  }
  wait_for(&waiter, 100);
  CHECK(waiter.status == LEASEHOLD_OK, "status %d", waiter.status);
  leasehold_read_async(nodes[1], LEASEHOLD_READ_LEASE, kPatience, 0, on_may_read, &waiter);
  wait_for(&waiter, 101);
  CHECK(waiter.status == LEASEHOLD_OK && waiter.result > 0, "status %d", waiter.status);
  CHECK(counter_total(&counters[1]) == 113, "%" PRId64, counter_total(&counters[1]));
  leasehold_propose_async(NULL, "1", 1, kPatience, on_proposed, &waiter);
  leasehold_read_async(nodes[1], 9, kPatience, 0, on_may_read, &waiter);
  wait_for(&waiter, 103);
  CHECK(waiter.status == LEASEHOLD_INVALID_ARGUMENT, "status %d", waiter.status);
}

static void a_transfer(void) {
  const int from = leader();
  const int to = (from + 1) % 3;
  leasehold_error error;
  CHECK(leasehold_transfer(nodes[to], 0, kPatience, &error) == LEASEHOLD_DROPPED && error.text[0],
        "a follower transfers");
  const int status = leasehold_transfer(nodes[from], (uint64_t)to + 1, kPatience, &error);
  CHECK(status == LEASEHOLD_OK, "%s", error.text);
  CHECK(leader() == to, "another node leads");
  read_total(from, LEASEHOLD_READ_LEASE, 113);
  pthread_mutex_lock(&seen[to].mutex);
  CHECK(seen[to].leases > 0 && seen[to].leaderships > 0 && seen[to].notices > 0,
        "the observer heard %d, %d, %d", seen[to].leases, seen[to].leaderships, seen[to].notices);
  pthread_mutex_unlock(&seen[to].mutex);
}

static void change(int what, const char* address) {
  leasehold_error error;
  const time_t end = time(NULL) + 30;
  int status = LEASEHOLD_DROPPED;
  /* A learner that is behind, and a change that is under way, are refused for now. */
  while (status == LEASEHOLD_DROPPED && time(NULL) < end) {
    status = leasehold_change_member(nodes[leader()], what, NODES, address, kPatience, &error);
  }
  CHECK(status == LEASEHOLD_OK, "change %d: %d, %s", what, status, error.text);
}

static void a_member_joins_by_a_snapshot_and_leaves(void) {
  leasehold_member members[NODES];
  leasehold_error error;
  size_t count = 0;
  for (int i = 0; i < 3; ++i) {
    CHECK(leasehold_cut_log(nodes[i], &error) == LEASEHOLD_OK, "%s", error.text);
  }
  CHECK(
      leasehold_change_member(nodes[0], 17, 4, NULL, kSecond, &error) == LEASEHOLD_INVALID_ARGUMENT,
      "a wrong change");
  open_node(NODES - 1);
  change(LEASEHOLD_ADD, addresses[NODES - 1]);
  change(LEASEHOLD_PROMOTE, NULL);
  read_total(NODES - 1, LEASEHOLD_READ_QUORUM, 113);
  CHECK(counters[NODES - 1].installed == 1, "%d snapshots", counters[NODES - 1].installed);
  CHECK(leasehold_node_members(nodes[0], members, NODES, &count, NULL) == LEASEHOLD_OK, "members");
  CHECK(count == NODES && members[3].id == NODES && members[3].voter &&
            strcmp(members[3].address, addresses[3]) == 0,
        "%zu members, the last is %s", count, members[3].address);
  if (leader() == NODES - 1) leasehold_transfer(nodes[NODES - 1], 1, kPatience, NULL);
  change(LEASEHOLD_REMOVE, NULL);
  struct seen* last = &seen[NODES - 1];
  pthread_mutex_lock(&last->mutex);
  while (last->failed == 0) pthread_cond_wait(&last->changed, &last->mutex);
  CHECK(last->failed == LEASEHOLD_REMOVED, "%d", last->failed);
  pthread_mutex_unlock(&last->mutex);
  leasehold_node_close(nodes[NODES - 1]);
  nodes[NODES - 1] = NULL;
}

static void no_snapshot_is_kept(void) {
  for (int i = 0; i < NODES; ++i) {
    CHECK(counters[i].taken == counters[i].released, "node %d keeps %d snapshots", i + 1,
          counters[i].taken - counters[i].released);
  }
}

static void a_node_ends_and_starts_again(void) {
  leasehold_error error;
  leasehold_node* unused = NULL;
  leasehold_options* options = options_of(0);
  const leasehold_machine machine = counter_machine(&counters[3]);
  CHECK(leasehold_node_open(options, &machine, NULL, &unused, &error) == LEASEHOLD_IN_USE,
        "the directory of a living node: %s", error.text);
  leasehold_options_free(options);
  CHECK(leasehold_node_drain(nodes[0], kPatience, &error) == LEASEHOLD_OK, "%s", error.text);
  CHECK(leasehold_propose(nodes[0], "1", 1, kSecond, NULL, &error) == LEASEHOLD_DROPPED,
        "a drained node takes a command: %s", error.text);
  leasehold_node_close(nodes[0]);
  nodes[0] = NULL;
  add(1, "7", "120");
  open_node(0);
  read_total(0, LEASEHOLD_READ_LEASE, 120);
}

static void without_a_majority_nothing_is_done(void) {
  leasehold_error error;
  leasehold_node_close(nodes[1]);
  leasehold_node_close(nodes[2]);
  const int status = leasehold_propose(nodes[0], "1", 1, kSecond / 10, NULL, &error);
  CHECK(status == LEASEHOLD_DROPPED || status == LEASEHOLD_UNKNOWN, "status %d", status);
  CHECK(leasehold_read(nodes[0], LEASEHOLD_READ_QUORUM, kSecond / 10, 0, NULL, &error) ==
                LEASEHOLD_DROPPED &&
            error.text[0],
        "a quorum of one");
  leasehold_node_close(nodes[0]);
}

static int remove_one(const char* path, const struct stat* status, int kind, struct FTW* place) {
  (void)status, (void)kind, (void)place;
  return remove(path);
}

int main(void) {
  const char* const temporary = getenv("TMPDIR");
  snprintf(folder, sizeof(folder), "%s/leasehold-c-XXXXXX", temporary ? temporary : "/tmp");
  CHECK(mkdtemp(folder) != NULL, "no folder %s", folder);
  CHECK(leasehold_version()[0] != '\0', "no version");
  choose_addresses();
  for (int i = 0; i < NODES; ++i) {
    counter_init(&counters[i]);
    pthread_mutex_init(&seen[i].mutex, NULL);
    pthread_cond_init(&seen[i].changed, NULL);
  }
  wrong_arguments_are_refused();
  a_long_error_is_cut_off();
  for (int i = 0; i < NODES - 1; ++i) open_node(i);
  commands_and_reads_at_every_node();
  calls_that_do_not_wait();
  a_transfer();
  a_member_joins_by_a_snapshot_and_leaves();
  a_node_ends_and_starts_again();
  without_a_majority_nothing_is_done();
  no_snapshot_is_kept();
  CHECK(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0, "%s stays", folder);
  printf("passed\n");
  return 0;
}
