#include <leasehold/base/random.h>
#include <leasehold/node/random_word.h>
#include <leasehold/node/tracer.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace leasehold::node {
namespace {

/// A generator for each thread: what is drawn for each call must not be shared memory.
Random& generator() {
  thread_local Random random(random_word());
  return random;
}

/// Zeros are no id.
std::uint64_t draw_id() {
  std::uint64_t id = 0;
  while (id == 0) id = generator().next();
  return id;
}

}  // namespace

void Tracer::set_ratio(double ratio) {
  // Also of what is no number.
  ratio_.store(ratio > 0 ? std::min(ratio, 1.0) : 0.0, std::memory_order_relaxed);
}

bool Tracer::draw(double ratio) {
  constexpr double kBound = 9007199254740992.0;  // 2^53: exact as a double
  return static_cast<double>(generator().next() >> 11U) < ratio * kBound;
}

replica::SpanPointer Tracer::make(std::string_view name, const replica::TraceContext* parent,
                                  lease::HolderInstant began, bool serves) {
  replica::SpanRecord record;
  record.name = name;
  record.began = began;
  record.serves = serves;
  if (parent != nullptr) {
    record.self = *parent;
    record.parent = parent->span;
  } else {
    record.self.trace_high = draw_id();
    record.self.trace_low = draw_id();
  }
  record.self.span = draw_id();
  return std::make_shared<replica::Span>(std::move(record), *this);
}

}  // namespace leasehold::node
