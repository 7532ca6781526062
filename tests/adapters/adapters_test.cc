// Calls as futures, in coroutines and on asio's executors, of three real nodes.
#include <leasehold/adapters/asio.h>
#include <leasehold/adapters/awaitable.h>
#include <leasehold/adapters/call.h>
#include <leasehold/adapters/future.h>
#include <leasehold/tests/node/node_fixture.h>

#include <gtest/gtest.h>
#include <asio/bind_executor.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/strand.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>

#include <chrono>
#include <coroutine>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::adapters {
namespace {

using node::kLong;
using replica::ProposeStatus;
using Adapters = node::NodeTest;

/// The simplest coroutine: it begins at once, and its frame ends with it.
struct Fire {
  // NOLINTNEXTLINE(readability-identifier-naming): the language's name
  struct promise_type {
    Fire get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

/// Tasks that one thread runs.
class Tasks {
 public:
  Post post() {
    return [this](std::function<void()> task) {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    };
  }
  /// Runs one, if there is one.
  bool run() {
    std::function<void()> task;
    {
      const std::lock_guard lock(mutex_);
      if (tasks_.empty()) return false;
      task = std::move(tasks_.front());
      tasks_.erase(tasks_.begin());
    }
    task();
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;
};

std::string text_of(const replica::ProposeResult& result) {
  return std::string(result.result.view());
}

TEST_F(Adapters, AFutureOfEachCall) {
  start_all();
  node::Node& any = *replica(1).node;
  EXPECT_EQ(text_of(as_future(propose(any, Bytes("a"), kLong)).get()), "done:a");
  const auto read_point = as_future(read_index(any, raft::ReadMode::quorum, kLong)).get();
  ASSERT_TRUE(read_point.index);
  EXPECT_TRUE(as_future(wait_applied(any, *read_point.index, kLong)).get().index);
  EXPECT_EQ(as_future(status(any)).get().members.size(), 3U);

  node::Node& leader = *replica(await_leader()).node;
  const auto refused =
      as_future(change_members(leader, {{node::MemberEdit::What::promote, raft::NodeId(9)}}, kLong))
          .get();
  EXPECT_EQ(refused.status, replica::GroupCallStatus::refused);
  raft::SettingsEdit edit;
  edit.heartbeat = std::chrono::milliseconds(50);
  EXPECT_EQ(as_future(change_settings(leader, edit, kLong)).get().status,
            replica::GroupCallStatus::done);
  const auto part = as_future(read_log(any, {}, kLong)).get();
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part.value().commands.at(0).command, Bytes("a"));
  EXPECT_FALSE(as_future(cut_log(leader)).get());  // this machine never makes itself durable
  EXPECT_EQ(as_future(transfer_leadership(leader, raft::kNobody, kLong)).get().status,
            replica::GroupCallStatus::done);
  EXPECT_TRUE(as_future(drain(leader, kLong)).get().complete);
}

TEST_F(Adapters, ACallBeginsNotBeforeItIsAsked) {
  start_all();
  {
    auto never = propose(*replica(1).node, Bytes("never"), kLong);
    auto later = propose(*replica(1).node, Bytes("later"), kLong);
    EXPECT_EQ(text_of(as_future(propose(*replica(1).node, Bytes("first"), kLong)).get()),
              "done:first");
    EXPECT_EQ(text_of(as_future(std::move(later)).get()), "done:later");
  }
  EXPECT_EQ(replica(1).machine.list(), (std::vector<std::string>{"first", "later"}));
}

TEST_F(Adapters, ACoroutineOfManyCalls) {
  start_all();
  std::promise<int> done;
  auto work = [](node::Node& node, std::promise<int>& finished) -> Fire {
    int committed = 0;
    for (int i = 0; i < 100; ++i) {
      const auto result = co_await propose(node, Bytes(std::to_string(i)), kLong);
      if (result.status == ProposeStatus::committed) ++committed;
      const auto seen = co_await read_index(node, raft::ReadMode::lease, kLong);
      if (!seen.index || *seen.index < result.id.index) break;
    }
    finished.set_value(committed);
  };
  work(*replica(2).node, done);
  EXPECT_EQ(done.get_future().get(), 100);
}

TEST_F(Adapters, ACoroutineGoesOnWhereItsHostSays) {
  start_all();
  Tasks tasks;
  std::vector<std::thread::id> threads;
  bool ended = false;
  auto work = [&](node::Node& node) -> Fire {
    for (int i = 0; i < 3; ++i) {
      co_await resume_on(tasks.post(), propose(node, Bytes("x"), kLong));
      threads.push_back(std::this_thread::get_id());
    }
    ended = true;
  };
  work(*replica(1).node);
  EXPECT_TRUE(node::eventually([&] {
    tasks.run();
    return ended;
  }));
  EXPECT_EQ(threads, std::vector<std::thread::id>(3, std::this_thread::get_id()));
}

/// The completion comes inside the call, and the coroutine with its frame ends there.
TEST_F(Adapters, AStoppedNodeAnswersInsideTheCall) {
  start_all();
  replica(1).node->stop();
  auto status = ProposeStatus::committed;
  bool ended = false;
  auto work = [&](node::Node& node) -> Fire {
    status = (co_await propose(node, Bytes("x"), kLong)).status;
    ended = true;
  };
  work(*replica(1).node);
  EXPECT_TRUE(ended);
  EXPECT_EQ(status, ProposeStatus::dropped);
  EXPECT_EQ(as_future(propose(*replica(1).node, Bytes("x"), kLong)).get().status,
            ProposeStatus::dropped);
}

TEST_F(Adapters, AsioRunsUntilTheAnswerIsThere) {
  start_all();
  asio::io_context io;
  std::thread::id thread;
  std::string answer;
  async(propose(*replica(1).node, Bytes("a"), kLong),
        asio::bind_executor(io, [&](const replica::ProposeResult& result) {
          thread = std::this_thread::get_id();
          answer = text_of(result);
        }));
  io.run();  // has work until the answer is there
  EXPECT_EQ(answer, "done:a");
  EXPECT_EQ(thread, std::this_thread::get_id());
}

// This asio has them for some compilers.
#if defined(ASIO_HAS_CO_AWAIT)
TEST_F(Adapters, ACoroutineOfAsio) {
  start_all();
  asio::io_context io;
  int committed = 0;
  const auto work = [&](node::Node& node) -> asio::awaitable<void> {
    for (int i = 0; i < 20; ++i) {
      const auto result = co_await async(propose(node, Bytes("x"), kLong), asio::use_awaitable);
      committed += result.status == ProposeStatus::committed ? 1 : 0;
    }
    const auto seen =
        co_await async(read_index(node, raft::ReadMode::lease, kLong), asio::use_awaitable);
    committed += seen.index ? 1 : 0;
  };
  const auto strand = asio::make_strand(io);
  asio::co_spawn(strand, work(*replica(3).node), asio::detached);
  io.run();
  EXPECT_EQ(committed, 21);
}
#endif

TEST_F(Adapters, AFutureOfAsio) {
  start_all();
  std::future<node::NodeStatus> asked = async(status(*replica(3).node), asio::use_future);
  EXPECT_EQ(asked.get().id, raft::NodeId(3));
}

/// A handler that cannot be copied.
TEST_F(Adapters, AHandlerMayOwnWhatItNeeds) {
  start_all();
  asio::io_context io;
  auto owned = std::make_unique<std::string>("mine");
  std::string seen;
  async(status(*replica(1).node),
        asio::bind_executor(
            io, [&seen, owned = std::move(owned)](const node::NodeStatus&) { seen = *owned; }));
  io.run();
  EXPECT_EQ(seen, "mine");
}

}  // namespace
}  // namespace leasehold::adapters
