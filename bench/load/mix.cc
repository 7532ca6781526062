#include <leasehold/bench/load/mix.h>

#include <algorithm>

namespace leasehold::bench {
namespace {

struct NamedMix {
  const char* name;
  Mix mix;
};

// Shares of read, update, insert, scan, modify.
constexpr NamedMix kMixes[] = {
    {"get", {{100, 0, 0, 0, 0}, Distribution::uniform}},
    {"set", {{0, 100, 0, 0, 0}, Distribution::uniform}},
    {"ycsb-a", {{50, 50, 0, 0, 0}, Distribution::zipf}},
    {"ycsb-b", {{95, 5, 0, 0, 0}, Distribution::zipf}},
    {"ycsb-c", {{100, 0, 0, 0, 0}, Distribution::zipf}},
    {"ycsb-d", {{95, 0, 5, 0, 0}, Distribution::latest}},
    {"ycsb-e", {{0, 0, 5, 95, 0}, Distribution::zipf}},
    {"ycsb-f", {{50, 0, 0, 0, 50}, Distribution::zipf}},
};

}  // namespace

const char* kind_name(OperationKind kind) {
  switch (kind) {
    case OperationKind::read: return "read";
    case OperationKind::update: return "update";
    case OperationKind::insert: return "insert";
    case OperationKind::scan: return "scan";
    case OperationKind::modify: return "read-modify-write";
  }
  return "";
}

std::optional<Mix> mix_named(std::string_view name) {
  for (const NamedMix& known : kMixes) {
    if (name == known.name) return known.mix;
  }
  return std::nullopt;
}

std::string mix_names() {
  std::string names;
  for (const NamedMix& known : kMixes)
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  return names;
}

LoadOperation OperationSource::next() {
  std::uint64_t drawn = random_.below(100);
  std::size_t kind = 0;
  while (kind + 1 < kKinds && drawn >= mix_.percent[kind]) drawn -= mix_.percent[kind++];
  LoadOperation operation;
  operation.kind = static_cast<OperationKind>(kind);
  if (operation.kind == OperationKind::insert) {
    operation.key = choice_.insert();
    return operation;
  }
  operation.key = choice_.draw(random_);
  if (operation.kind == OperationKind::scan) {
    operation.count = 1 + random_.below(kScanMax);
    operation.count = std::min(operation.count, choice_.keys() - operation.key);
  }
  return operation;
}

}  // namespace leasehold::bench
