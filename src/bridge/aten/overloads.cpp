#include "bridge/aten/overloads.h"

#include <memory>
#include <mutex>
#include <unordered_map>

namespace cresset::bridge {

namespace {

// Keys refer to the names which the operators themselves own.
class ByName : public c10::OpRegistrationListener {
 public:
  ByName() { overloads_.reserve(4096); }

  void onOperatorRegistered(const c10::OperatorHandle& handle) override {
    std::lock_guard lock(mutex_);
    overloads_[handle.operator_name().name].push_back(handle);
  }
  // The key refers to the name of an overload. If this overload is removed, the name of another overload must replace
  // it.
  void onOperatorDeregistered(const c10::OperatorHandle& handle) override {
    std::lock_guard lock(mutex_);
    auto left = overloads_.extract(handle.operator_name().name);
    if (!left) return;
    std::erase_if(left.mapped(),
                  [&](const c10::OperatorHandle& one) { return one.operator_name() == handle.operator_name(); });
    if (left.mapped().empty()) return;
    left.key() = left.mapped().front().operator_name().name;
    overloads_.insert(std::move(left));
  }

  std::vector<c10::OperatorHandle> find(std::string_view name) {
    std::lock_guard lock(mutex_);
    const auto found = overloads_.find(name);
    return found == overloads_.end() ? std::vector<c10::OperatorHandle>{} : found->second;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string_view, std::vector<c10::OperatorHandle>> overloads_;
};

ByName& by_name() {
  static ByName* const one = [] {
    auto* made = new ByName;  // lives as long as the dispatcher
    // The registration handle is leaked on purpose, because its destruction would unregister the listener.
    new c10::RegistrationHandleRAII(
        c10::Dispatcher::singleton().addRegistrationListener(std::unique_ptr<c10::OpRegistrationListener>(made)));
    return made;
  }();
  return *one;
}

}  // namespace

std::vector<c10::OperatorHandle> overloads_of(std::string_view name) { return by_name().find(name); }
void watch_overloads() { by_name(); }

}  // namespace cresset::bridge
