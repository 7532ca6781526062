#include <leasehold/replica/span.h>

#include <algorithm>

namespace leasehold::replica {

void Span::station(std::string_view name, lease::HolderInstant at,
                   std::vector<SpanAttribute> attributes) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  if (record_.stations.size() == kSpanStationsMax) {
    ++record_.stations_dropped;
    return;
  }
  const lease::HolderInstant before =
      record_.stations.empty() ? record_.began : record_.stations.back().at;
  record_.stations.push_back({name, std::max(at, before), std::move(attributes)});
}

void Span::add(SpanAttribute attribute) {
  const std::lock_guard lock(mutex_);
  if (!ended_) record_.attributes.push_back(std::move(attribute));
}

void Span::end(lease::HolderInstant at, std::string problem) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(ended_, true)) return;
    const lease::HolderInstant last =
        record_.stations.empty() ? record_.began : record_.stations.back().at;
    record_.ended = std::max(at, last);
    record_.problem = std::move(problem);
  }
  // Nothing touches the record behind the end.
  sink_.ended(std::move(record_));
}

}  // namespace leasehold::replica
