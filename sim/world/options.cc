#include <leasehold/base/assert.h>
#include <leasehold/sim/world/options.h>

namespace leasehold::sim {
namespace {

constexpr PartitionShape kPartitionShapes[] = {PartitionShape::one_way, PartitionShape::bridge,
                                               PartitionShape::ring, PartitionShape::chain,
                                               PartitionShape::majority};

}  // namespace

const char* partition_shape_name(PartitionShape shape) {
  switch (shape) {
    case PartitionShape::one_way: return "one-way";
    case PartitionShape::bridge: return "bridge";
    case PartitionShape::ring: return "ring";
    case PartitionShape::chain: return "chain";
    case PartitionShape::majority: return "majority";
  }
  LEASEHOLD_UNREACHABLE();
}

std::optional<PartitionShape> partition_shape_of(const std::string& name) {
  for (const PartitionShape shape : kPartitionShapes) {
    if (name == partition_shape_name(shape)) return shape;
  }
  return std::nullopt;
}

}  // namespace leasehold::sim
