// The command line of `leasehold sim`.
#pragma once

#include <leasehold/sim/world/options.h>
#include <leasehold/story/telling.h>

#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::sim {

struct SimArguments {
  std::uint64_t first = 1;
  std::uint64_t last = 100;
  std::uint64_t jobs = 1;
  bool trace_hash = false;
  bool keep_going = false;
  bool shrink = false;
  bool quiet = false;
  bool print_plan = false;
  /// A file with a plan (plan_text.h) to run in place of what the seed would draw; empty: none.
  std::string plan_file;
  SimOptions sim;
  story::TellingOptions telling;
};

/// Returns what is wrong; empty if nothing is.
std::string parse_sim_arguments(const std::vector<std::string>& given, SimArguments& arguments);

/// Reads SimArguments::plan_file, if there is one, into the options. Returns what is wrong; empty
/// if nothing is.
std::string take_plan_file(SimArguments& arguments);

/// The options that run this seed again, as they are typed.
std::string options_again(std::uint64_t seed, const SimArguments& arguments);

}  // namespace leasehold::sim
