#include <leasehold/base/fnv.h>
#include <leasehold/storage/descriptor.h>
#include <leasehold/storage/lock_place.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace leasehold::storage {
namespace {

// Of file systems whose locks the local kernel keeps alone. Those without a name in the header are
// XFS, F2FS and ZFS.
constexpr std::uint64_t kLocal[] = {
    EXT4_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC,
    0x58465342,       0xf2f52010,        0x2fc12fc1};
constexpr std::size_t kBootIdBytes = 36;

}  // namespace

std::uint64_t lock_place(int folder) {
  struct statfs system {};
  if (::fstatfs(folder, &system) != 0) return 0;
  const auto type = static_cast<std::uint64_t>(system.f_type) & 0xffffffffU;
  if (std::find(std::begin(kLocal), std::end(kLocal), type) == std::end(kLocal)) return 0;

  struct stat file {};
  if (::fstat(folder, &file) != 0) return 0;

  char boot[kBootIdBytes] = {};
  const Descriptor id(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (id.get() < 0 || ::read(id.get(), boot, sizeof(boot)) != static_cast<ssize_t>(sizeof(boot))) {
    return 0;
  }
  Fnv place;
  place.add(std::string_view(boot, sizeof(boot)));
  // The number of a folder is given to another one only when nobody has the first one open: when
  // the process that had locked it has ended.
  place.add(fmt::format(" {} {}", file.st_dev, file.st_ino));
  return place.value() == 0 ? 1 : place.value();
}

}  // namespace leasehold::storage
