// The parts of draw_plan(), for its own files. Each draws from a stream of its own, named after
// its subject, and throws away what is not wanted: a draw that is added to one subject changes no
// other.
#pragma once

#include <leasehold/lease/timing.h>
#include <leasehold/sim/world/options.h>
#include <leasehold/sim/world/plan.h>

#include <cstdint>

namespace leasehold::sim {

// ---- The group ----

lease::Timing timing(int lease_ms, int heartbeat_ms, std::int64_t drift_ppm, int margin_ms,
                     int election_ms);

/// The timing that the seed is about. The bound on the drift is one for all; D may differ by node.
void draw_timings(const SimOptions& options, Plan& plan);

/// What the group has agreed on, what each node is started with, and changes. After everything that
/// decides the timing and the number of the nodes.
void draw_settings(const SimOptions& options, Plan& plan);

/// After the settings: SimOptions::earlier.
void draw_upgrade(const SimOptions& options, Plan& plan);

void draw_deputies(Plan& plan);

/// After draw_upgrade(): an earlier version knows no beats.
void draw_beats(const SimOptions& options, Plan& plan);

void draw_transfers(Plan& plan);

/// After everything else that is drawn for the nodes.
void draw_member_changes(Plan& plan);

/// At least one of the founders has a state, two as a rule: if only one has, the group does nothing
/// while it is away.
void draw_witnesses(Plan& plan);

// ---- Links, disks, threads and logs ----

void draw_links(Plan& plan);

void draw_disks(Plan& plan);

void draw_nodes(Plan& plan);

/// Small limits make the paths behind them common.
void draw_limits(Plan& plan);

/// When logs are cut, and how snapshots travel: in most seeds far more often, and in smaller parts,
/// than in life.
void draw_snapshots(Plan& plan);

/// How often a node is asked to cut its log, in one seed of three.
void draw_cut_demands(Plan& plan);

// ---- Clients ----

void draw_workload(Plan& plan);

void draw_sessions(Plan& plan);

/// After everything that decides the drift.
void draw_leases(Plan& plan);

/// What the leases have in addition to their time to live.
void draw_lease_terms(Plan& plan);

void draw_key_locks(const SimOptions& options, Plan& plan);

/// SimOptions::lease_work. Most names are free at a time, so that most clients hold one.
void draw_lease_work(Plan& plan);

// ---- Grounds: seeds with fault rates of their own ----

/// Nearly every leader falls right after its election, and what it appended travels entry by entry:
/// the ground on which entries of old terms are half replicated.
void draw_figure_8(Plan& plan);

/// Every leader's clocks are as slow as they may be, the others' as fast; elections take little of
/// a long lease. Between the end of its promises and the moment at which it has to notice, a leader
/// that was deposed lives as long as it can, and there it wakes up.
void draw_edge_of_the_lease(Plan& plan);

/// Commands are forwarded most of the time, their copies come late, and leaders are deposed while
/// they live: a copy meets a node that took the command when it still led.
void draw_late_copies(Plan& plan);

/// Everything that was drawn, but far less often (SimOptions::long_life).
void draw_long_life(Plan& plan);

}  // namespace leasehold::sim
