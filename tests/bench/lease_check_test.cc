// The lease check takes no lock, makes no system call and allocates nothing.
//
// Three oracles, each with a control that shows that it can fail: a seccomp filter that ends a
// child process at its first system call, a counting operator new, and a counting
// pthread_mutex_lock and pthread_rwlock_rdlock (std::mutex and std::shared_mutex call those).
#include <leasehold/base/bytes.h>
#include <leasehold/node/system_clock.h>
#include <leasehold/replica/lease_view.h>

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <string>
#include <thread>

namespace {

std::atomic<std::uint64_t> allocations{0};
std::atomic<std::uint64_t> locks{0};

template <class Function>
Function next_of(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

void* operator new(std::size_t bytes) {
  allocations.fetch_add(1);
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static const auto real = next_of<int (*)(pthread_mutex_t*)>("pthread_mutex_lock");
  locks.fetch_add(1);
  return real(mutex);
}
extern "C" int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  static const auto real = next_of<int (*)(pthread_rwlock_t*)>("pthread_rwlock_rdlock");
  locks.fetch_add(1);
  return real(lock);
}

namespace leasehold::node {
namespace {

constexpr int kChecks = 100000;

raft::LeaseState lease_until(raft::HolderInstant end) {
  raft::LeaseState state;
  state.term = raft::Term(3);
  state.end = end;
  state.commit = raft::Index(42);
  return state;
}

/// Ends the calling process at any system call but exit, and the one allowed (-1: none).
void forbid_system_calls(int allowed) {
  const auto number = static_cast<unsigned>(offsetof(seccomp_data, nr));
  std::array<sock_filter, 6> program = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(allowed), 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(98);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) _exit(99);
}

/// The wait status of a child that runs `body` without system calls: 0 if it lived.
int without_system_calls(int allowed, const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    forbid_system_calls(allowed);
    body();
    _exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

bool killed_by_filter(int status) {
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
}

void read_clock() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
}

class LeaseCheck : public ::testing::Test {
 protected:
  /// Valid, expired and absent leases.
  void check_often(const replica::LeaseView& view) {
    for (int i = 0; i < kChecks; ++i) {
      if (view.readable_index(clock_)) ++readable_;
    }
  }

  const SystemClock clock_;
  replica::LeaseView view_;
  int readable_ = 0;
};

TEST_F(LeaseCheck, SystemCallsWouldBeNoticed) {
  EXPECT_TRUE(killed_by_filter(without_system_calls(-1, [] { getppid(); })));
  EXPECT_TRUE(killed_by_filter(without_system_calls(-1, [] { std::this_thread::yield(); })));
  EXPECT_EQ(without_system_calls(-1, [] {}), 0);
}

TEST_F(LeaseCheck, MakesNoSystemCall) {
  // A machine whose clock source is outside the vDSO pays one for the bare clock read too.
  const int clock_call = without_system_calls(-1, read_clock) == 0 ? -1 : SYS_clock_gettime;
  view_.publish(lease_until(raft::HolderInstant::never()));
  EXPECT_EQ(without_system_calls(clock_call, [this] { check_often(view_); }), 0);
  view_.publish(lease_until(raft::HolderInstant(raft::Duration(1))));
  EXPECT_EQ(without_system_calls(clock_call, [this] { check_often(view_); }), 0);
  EXPECT_EQ(without_system_calls(clock_call, [this] { check_often(replica::LeaseView()); }), 0);
}

TEST_F(LeaseCheck, AllocatesNothingAndTakesNoLock) {
  view_.publish(lease_until(raft::HolderInstant::never()));
  const std::uint64_t allocations_before = allocations.load();
  const std::uint64_t locks_before = locks.load();
  check_often(view_);
  EXPECT_EQ(allocations.load(), allocations_before);
  EXPECT_EQ(locks.load(), locks_before);
  EXPECT_EQ(readable_, kChecks);
}

TEST_F(LeaseCheck, AllocationsAndLocksWouldBeNoticed) {
  const std::uint64_t allocations_before = allocations.load();
  const Bytes copied(std::string(100, 'x'));
  EXPECT_GT(allocations.load(), allocations_before);

  const std::uint64_t locks_before = locks.load();
  std::mutex mutex;
  { const std::lock_guard<std::mutex> held(mutex); }
  std::shared_mutex shared;
  { const std::shared_lock<std::shared_mutex> held(shared); }
  EXPECT_EQ(locks.load(), locks_before + 2);
}

}  // namespace
}  // namespace leasehold::node
