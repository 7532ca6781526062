#include <leasehold/kv/local/lease_renewal.h>

#include <utility>

namespace leasehold::kv {
namespace {

/// The term in which this node leads, if everything is applied that was committed when this was
/// called.
std::optional<raft::Term> leads_in(const node::Group& node) {
  const replica::LeaseView& view = node.lease_view();
  const replica::LeaseLook look = view.look(node.clock());
  const auto index = look.readable_index();
  if (!index || view.applied() < *index) return std::nullopt;
  return look.state.term;
}

std::optional<kv::LeaseKeeper::Renewal> renew(kv::LeaseKeeper& keeper,
                                              const std::vector<grant::LeaseId>& ids,
                                              raft::Term term) {
  auto renewed = keeper.renew(ids, term);
  if (!renewed) return std::nullopt;
  return std::move(renewed).value();
}

}  // namespace

std::optional<kv::LeaseKeeper::Renewal> renew_under_lease(const node::Group& node,
                                                          kv::LeaseKeeper& keeper,
                                                          const std::vector<grant::LeaseId>& ids) {
  const auto term = leads_in(node);
  return term ? renew(keeper, ids, *term) : std::nullopt;
}

std::optional<kv::LeaseKeeper::Renewal> renew_under_lease(const node::Group& node,
                                                          kv::LeaseKeeper& keeper,
                                                          const kv::Store& store,
                                                          const std::vector<kv::LeaseRef>& leases) {
  const auto term = leads_in(node);
  if (!term) return std::nullopt;
  // Look the names up after the look at the lease: so the store has every grant that was
  // acknowledged before the request came.
  std::vector<grant::LeaseId> ids;
  for (const kv::LeaseRef& lease : leases) {
    ids.push_back(lease.id);
    if (lease.name.empty()) continue;
    const auto found = store.lease_terms(grant::LeaseId(0), lease.name);
    if (!found) return std::nullopt;
    if (found.value()) ids.back() = found.value()->id;
  }
  return renew(keeper, ids, *term);
}

}  // namespace leasehold::kv
