#include "graph/op_name.h"

#include <deque>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "base/check.h"

namespace cresset::graph {
namespace {

// Names live in a deque, so that returned views stay valid while it grows.
struct Table {
  Table() { ids.reserve(2048); }  // the operators with rules are several hundred entries from the start

  std::shared_mutex mutex;
  std::deque<std::string> names;
  std::unordered_map<std::string_view, uint32_t> ids;
};

Table& table() {
  static Table* const instance = new Table;  // never destroyed: names are valid for the life of the process
  return *instance;
}

}  // namespace

OpId op_id(std::string_view name) {
  Table& t = table();
  {
    std::shared_lock lock(t.mutex);
    if (auto it = t.ids.find(name); it != t.ids.end()) return OpId{it->second};
  }
  std::unique_lock lock(t.mutex);
  if (auto it = t.ids.find(name); it != t.ids.end()) return OpId{it->second};
  const auto index = static_cast<uint32_t>(t.names.size());
  t.ids.emplace(t.names.emplace_back(name), index);
  return OpId{index};
}

std::string_view op_name(OpId id) {
  Table& t = table();
  std::shared_lock lock(t.mutex);
  CRESSET_CHECK(id.index < t.names.size(), "unknown operator id");
  return t.names[id.index];
}

}  // namespace cresset::graph
