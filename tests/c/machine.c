#include "machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct state {
  struct counter* owner;
  int64_t total;
  uint64_t last;
};

void counter_init(struct counter* counter) {
  memset(counter, 0, sizeof(*counter));
  pthread_mutex_init(&counter->mutex, NULL);
}

int64_t counter_total(struct counter* counter) {
  pthread_mutex_lock(&counter->mutex);
  const int64_t total = counter->total;
  pthread_mutex_unlock(&counter->mutex);
  return total;
}

static uint64_t durable_index(void* context) {
  struct counter* counter = context;
  pthread_mutex_lock(&counter->mutex);
  const uint64_t durable = counter->durable;
  pthread_mutex_unlock(&counter->mutex);
  return durable;
}

static void apply(void* context, const leasehold_command* commands, size_t count, uint64_t last,
                  leasehold_results* results) {
  struct counter* counter = context;
  pthread_mutex_lock(&counter->mutex);
  for (size_t i = 0; i < count; ++i) {
    char text[32] = "";
    if (commands[i].size == 0 || commands[i].size >= sizeof(text)) {
      leasehold_results_set(results, i, "error: say a number", 19);
      continue;
    }
    memcpy(text, commands[i].bytes, commands[i].size);
    counter->total += strtoll(text, NULL, 10);
    const int size = snprintf(text, sizeof(text), "%" PRId64, counter->total);
    leasehold_results_set(results, i, text, (size_t)size);
  }
  counter->last = last;
  pthread_mutex_unlock(&counter->mutex);
}

/* It survives its node in this process, which is as durable as this test needs. */
static int make_durable(void* context, uint64_t* index, leasehold_error* error) {
  struct counter* counter = context;
  (void)error;
  pthread_mutex_lock(&counter->mutex);
  counter->durable = counter->last;
  *index = counter->durable;
  pthread_mutex_unlock(&counter->mutex);
  return LEASEHOLD_OK;
}

static int read_state(void* context, uint64_t offset, void* to, size_t bytes,
                      leasehold_error* error) {
  const struct state* state = context;
  (void)error;
  memcpy(to, (const char*)&state->total + offset, bytes);
  return LEASEHOLD_OK;
}

static void release_state(void* context) {
  struct state* state = context;
  pthread_mutex_lock(&state->owner->mutex);
  ++state->owner->released;
  pthread_mutex_unlock(&state->owner->mutex);
  free(state);
}

static int take_snapshot(void* context, leasehold_snapshot* snapshot, leasehold_error* error) {
  struct counter* counter = context;
  struct state* state = malloc(sizeof(*state));
  if (state == NULL) {
    leasehold_error_set(error, LEASEHOLD_IO, "no memory for a snapshot");
    return LEASEHOLD_IO;
  }
  pthread_mutex_lock(&counter->mutex);
  state->owner = counter;
  state->total = counter->total;
  state->last = counter->last;
  ++counter->taken;
  pthread_mutex_unlock(&counter->mutex);
  snapshot->context = state;
  snapshot->last = state->last;
  snapshot->size = sizeof(state->total);
  snapshot->read = read_state;
  snapshot->release = release_state;
  return LEASEHOLD_OK;
}

static int install_snapshot(void* context, const leasehold_snapshot* snapshot,
                            leasehold_error* error) {
  struct counter* counter = context;
  int64_t total = 0;
  if (snapshot->size != sizeof(total)) {
    leasehold_error_set(error, LEASEHOLD_CORRUPTED, "a counter has eight bytes");
    return LEASEHOLD_CORRUPTED;
  }
  const int status = snapshot->read(snapshot->context, 0, &total, sizeof(total), error);
  if (status != LEASEHOLD_OK) return status;
  pthread_mutex_lock(&counter->mutex);
  counter->total = total;
  counter->last = snapshot->last;
  counter->durable = snapshot->last;
  ++counter->installed;
  pthread_mutex_unlock(&counter->mutex);
  return LEASEHOLD_OK;
}

leasehold_machine counter_machine(struct counter* counter) {
  leasehold_machine machine;
  memset(&machine, 0, sizeof(machine));
  machine.size = sizeof(machine);
  machine.context = counter;
  machine.durable_index = durable_index;
  machine.apply = apply;
  machine.make_durable = make_durable;
  machine.take_snapshot = take_snapshot;
  machine.install_snapshot = install_snapshot;
  return machine;
}
