/* A replicated counter in C: three nodes in one process, over TCP on loopback, with their logs on
 * disk. A real program runs one node per machine. */
#include <leasehold/c/leasehold.h>

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES 3
#define SECOND INT64_C(1000000000)

/* All in memory: after a restart the log is applied from its beginning. */
struct counter {
  _Atomic int64_t total;
};

static uint64_t durable_index(void* context) {
  (void)context;
  return 0;
}

/* Deterministic: the same commands in the same order on every node. */
static void apply(void* context, const leasehold_command* commands, size_t count, uint64_t last,
                  leasehold_results* results) {
  struct counter* counter = context;
  (void)last;
  for (size_t i = 0; i < count; ++i) {
    int64_t amount = 0;
    char text[32];
    if (commands[i].size != sizeof(amount)) {
      leasehold_results_set(results, i, "error: a command has eight bytes", 32);
      continue;
    }
    memcpy(&amount, commands[i].bytes, sizeof(amount));
    const int size = snprintf(text, sizeof(text), "%" PRId64, counter->total += amount);
    leasehold_results_set(results, i, text, (size_t)size);
  }
}

static void set(leasehold_options* options, const char* name, const char* value) {
  leasehold_error error;
  if (leasehold_options_set(options, name, value, &error) == LEASEHOLD_OK) return;
  fprintf(stderr, "%s\n", error.text);
  exit(1);
}

static leasehold_node* open_node(int node, int port, const char* folder, struct counter* counter) {
  char text[300];
  leasehold_error error;
  leasehold_node* opened = NULL;
  leasehold_options* options = leasehold_options_new();
  snprintf(text, sizeof(text), "%d", node + 1);
  set(options, "id", text);
  snprintf(text, sizeof(text), "%s/node%d", folder, node + 1);
  set(options, "data-dir", text);
  for (int i = 0; i < NODES; ++i) {
    snprintf(text, sizeof(text), "%d=127.0.0.1:%d", i + 1, port + i);
    set(options, "peer", text);
  }
  leasehold_machine machine = {sizeof(machine), counter, durable_index, apply, NULL, NULL, NULL};
  if (leasehold_node_open(options, &machine, NULL, &opened, &error) != LEASEHOLD_OK) {
    fprintf(stderr, "node %d: %s\n", node + 1, error.text);
    exit(1);
  }
  leasehold_options_free(options);
  return opened;
}

int main(int argc, char** argv) {
  const int port = argc > 1 ? atoi(argv[1]) : 7490; /* and the two behind it */
  const char* const folder = argc > 2 ? argv[2] : "counter-in-c";
  static struct counter counters[NODES];
  leasehold_node* nodes[NODES];
  for (int i = 0; i < NODES; ++i) nodes[i] = open_node(i, port, folder, &counters[i]);

  /* Any node takes commands; the first waits until the three have met and elected a leader. */
  for (int i = 0; i < NODES; ++i) {
    const int64_t amount = 5;
    leasehold_reply reply;
    leasehold_error error;
    if (leasehold_propose(nodes[i], &amount, sizeof(amount), 20 * SECOND, &reply, &error)) {
      fprintf(stderr, "%s\n", error.text);
      return 1;
    }
    printf("through node %d: %.*s\n", i + 1, (int)reply.size, (const char*)reply.bytes);
    leasehold_reply_clear(&reply);
  }
  /* Any node serves linearizable reads: first the engine's word, then our own memory. */
  for (int i = 0; i < NODES; ++i) {
    leasehold_read_point point;
    if (leasehold_read(nodes[i], LEASEHOLD_READ_LEASE, 20 * SECOND, 0, &point, NULL)) return 1;
    printf("node %d reads %" PRId64 "%s\n", i + 1, counters[i].total,
           point.lease ? ", by its lease" : "");
  }
  for (int i = 0; i < NODES; ++i) leasehold_node_close(nodes[i]);
  return 0;
}
