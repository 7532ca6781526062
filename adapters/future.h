// A call of a Group as a std::future.
#pragma once

#include <leasehold/adapters/call.h>

#include <future>
#include <memory>
#include <utility>

namespace leasehold::adapters {

/// Begins the call. The future is ready when it has ended, by its timeout at the latest; destroying
/// it does not wait. Not to be waited for on a thread of the node.
template <class Answer>
std::future<Answer> as_future(Call<Answer> call) {
  auto answer = std::make_shared<std::promise<Answer>>();
  std::future<Answer> answered = answer->get_future();
  std::move(call).begin([answer](Answer given) { answer->set_value(std::move(given)); });
  return answered;
}

}  // namespace leasehold::adapters
