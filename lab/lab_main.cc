// The lab without a browser: what its page shows, as hashes and records.
#include <leasehold/lab/lab.h>
#include <leasehold/lab/rehearsal.h>
#include <leasehold/lab/scenario_visit.h>
#include <leasehold/story/trace_file.h>

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

using leasehold::lab::Lab;

constexpr const char* kUsage =
    "leasehold_lab: the lease lab without a browser\n"
    "\n"
    "  leasehold_lab rehearse FIRST LAST   the trace hash of each rehearsal\n"
    "  leasehold_lab hash LINK MS          the trace hash of a visit after so many milliseconds\n"
    "  leasehold_lab records LINK MS       what happened in it, one JSON object a line\n"
    "  leasehold_lab scenario LINK MS      it as a scenario file, up to then\n"
    "\n"
    "LINK is what stands behind the # in the address of the page.\n";

/// 0 for anything that is no number up to 999999999.
unsigned long number_of(const std::string& word) {
  if (word.empty() || word.size() > 9) return 0;
  if (word.find_first_not_of("0123456789") != std::string::npos) return 0;
  return std::strtoul(word.c_str(), nullptr, 10);
}

int usage() {
  std::fputs(kUsage, stderr);
  return 2;
}

int rehearse(unsigned long first, unsigned long last) {
  for (unsigned long seed = first; seed <= last; ++seed) {
    fmt::print("{} {:016x}\n", seed, leasehold::lab::rehearse(seed).hash);
  }
  return 0;
}

int refuse(const std::string& what) {
  fmt::print(stderr, "leasehold_lab: {}\n", what);
  return 2;
}

int write_scenario(const std::string& link, unsigned long length) {
  const auto visit = leasehold::lab::parse_visit(link);
  if (!visit) return refuse(visit.error().message);
  const auto text =
      leasehold::lab::scenario_of_visit(visit.value(), std::chrono::milliseconds(length));
  if (!text) return refuse(text.error().message);
  fmt::print("{}", text.value());
  return 0;
}

int play(const std::string& link, unsigned long length, bool records) {
  const auto visit = leasehold::lab::parse_visit(link);
  if (!visit) return refuse(visit.error().message);
  Lab lab(visit.value());
  lab.run(std::chrono::milliseconds(length));
  if (!lab.refusal().empty()) return refuse(lab.refusal());
  if (records) {
    for (const auto& record : lab.take_records()) {
      fmt::print("{}\n", leasehold::story::encode_record(record));
    }
  } else {
    fmt::print("{:016x}\n", lab.hash());
  }
  if (!lab.violation().empty()) fmt::print(stderr, "violation: {}\n", lab.violation());
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) return usage();
  const std::string what = words[1];
  const unsigned long last = number_of(words[3]);
  if (what == "rehearse" && number_of(words[2]) > 0) return rehearse(number_of(words[2]), last);
  if (what == "scenario" && last <= 600'000) return write_scenario(words[2], last);
  const bool records = what == "records";
  if ((!records && what != "hash") || last > 600'000) return usage();
  return play(words[2], last, records);
}
