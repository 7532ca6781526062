/* A counter as a state machine in C, in memory, with snapshots: for the test. */
#ifndef LEASEHOLD_TESTS_C_MACHINE_H
#define LEASEHOLD_TESTS_C_MACHINE_H

#include <leasehold/c/leasehold.h>

#include <pthread.h>
#include <stdint.h>

struct counter {
  pthread_mutex_t mutex;
  int64_t total;       /* under mutex */
  uint64_t last;       /* applied; under mutex */
  uint64_t durable;    /* under mutex */
  int installed;       /* snapshots; under mutex */
  int taken, released; /* snapshots; under mutex */
};

void counter_init(struct counter* counter);
/* A command is a number in decimal digits, perhaps with a sign, and its result the new total. */
leasehold_machine counter_machine(struct counter* counter);
int64_t counter_total(struct counter* counter);

#endif
