// How oracles name nodes, terms and entries.
#pragma once

#include <leasehold/raft/types.h>
#include <leasehold/sim/world/sim_node.h>

#include <fmt/format.h>

#include <string>

namespace leasehold::sim {

inline std::string name(const SimNode& node) {
  return fmt::format("node {}", node.id().value());
}

inline std::string term_text(raft::Term term) {
  return fmt::format("term {}", term.value());
}

inline std::string id_text(raft::LogId id) {
  return fmt::format("entry {} of {}", id.index.value(), term_text(id.term));
}

}  // namespace leasehold::sim
