// How oracles name what they speak of.
#pragma once

#include <leasehold/raft/types.h>
#include <leasehold/sim/world/sim_node.h>

#include <string>

namespace leasehold::sim {

inline std::string name(const SimNode& node) {
  return "node " + std::to_string(node.id().value());
}

inline std::string term_text(raft::Term term) {
  return "term " + std::to_string(term.value());
}

inline std::string id_text(raft::LogId id) {
  return "entry " + std::to_string(id.index.value()) + " of " + term_text(id.term);
}

}  // namespace leasehold::sim
