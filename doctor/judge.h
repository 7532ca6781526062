// From facts to findings: pure functions. The command gathers (gather.h), judges, and prints.
#pragma once

#include <leasehold/doctor/facts.h>
#include <leasehold/doctor/finding.h>
#include <leasehold/lease/timing.h>
#include <leasehold/server/settings.h>

#include <cstdint>

namespace leasehold::doctor {

/// All of them, in the order in which they are shown.
Findings judge(const server::ServeSettings& settings, const Facts& facts);

// The parts of judge().

/// Clock source, time of day, suspend, VM clock, stolen time, pauses.
Findings judge_clock(const server::ServeSettings& settings, const Facts& facts);
/// Each server's clock against this machine's.
Findings judge_drift(const server::ServeSettings& settings, const Facts& facts);
/// Limits and habits of the kernel and of the control group.
Findings judge_limits(const server::ServeSettings& settings, const MachineFacts& facts);
/// The file system, its space and its syncs.
Findings judge_disk(const server::ServeSettings& settings, const Facts& facts);
/// What is in the data directory, and who has it.
Findings judge_folder(const server::ServeSettings& settings, const Facts& facts);
/// Own ports, and the peers'.
Findings judge_addresses(const Facts& facts);
Findings judge_security(const server::ServeSettings& settings, const Facts& facts);
/// Versions, numbers and machines of the nodes that answered.
Findings judge_servers(const server::ServeSettings& settings, const Facts& facts);
/// The settings, or those of the group if a server told them, against what was measured.
Findings judge_timing(const server::ServeSettings& settings, const Facts& facts);

/// The timing that counts: the group's, if a server told it, else that of the settings.
lease::Timing timing_in_force(const server::ServeSettings& settings, const Facts& facts);
/// The p99 of the round trips to the servers, of the slowest one; zero without any.
lease::Duration network_seen(const Facts& facts);
/// The longest round trip of a renewal that was seen: of the network, and of a voter's disk.
lease::Duration renewal_seen(const Facts& facts);
/// The memory that a node with these settings may use.
std::uint64_t memory_needed(const server::ServeSettings& settings);

}  // namespace leasehold::doctor
