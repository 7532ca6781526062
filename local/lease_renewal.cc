#include <leasehold/local/lease_renewal.h>

#include <utility>

namespace leasehold::local {

std::optional<kv::LeaseKeeper::Renewal> renew_under_lease(const node::Node& node,
                                                          kv::LeaseKeeper& keeper,
                                                          const std::vector<lease::LeaseId>& ids) {
  const node::LeaseView& view = node.lease_view();
  const node::LeaseLook look = view.look(node.clock());
  const auto index = look.readable_index();
  if (!index || view.applied() < *index) return std::nullopt;
  auto renewed = keeper.renew(ids, look.state.term);
  if (!renewed) return std::nullopt;
  return std::move(renewed).value();
}

}  // namespace leasehold::local
