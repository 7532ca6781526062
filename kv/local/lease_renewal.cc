#include <leasehold/kv/local/lease_renewal.h>

#include <utility>

namespace leasehold::kv {

std::optional<kv::LeaseKeeper::Renewal> renew_under_lease(const node::Node& node,
                                                          kv::LeaseKeeper& keeper,
                                                          const std::vector<grant::LeaseId>& ids) {
  const replica::LeaseView& view = node.lease_view();
  const replica::LeaseLook look = view.look(node.clock());
  const auto index = look.readable_index();
  if (!index || view.applied() < *index) return std::nullopt;
  auto renewed = keeper.renew(ids, look.state.term);
  if (!renewed) return std::nullopt;
  return std::move(renewed).value();
}

}  // namespace leasehold::kv
