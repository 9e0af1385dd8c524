#include "frontend/cpython/kept_for_good.h"

#include <opcode.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "frontend/cpython/code_origin.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {
namespace {

#ifdef POP_JUMP_FORWARD_IF_TRUE
constexpr int kIfTrue = POP_JUMP_FORWARD_IF_TRUE, kIfFalse = POP_JUMP_FORWARD_IF_FALSE;
constexpr int kIfNone = POP_JUMP_FORWARD_IF_NONE, kIfNotNone = POP_JUMP_FORWARD_IF_NOT_NONE;
#else
constexpr int kIfTrue = POP_JUMP_IF_TRUE, kIfFalse = POP_JUMP_IF_FALSE;
constexpr int kIfNone = POP_JUMP_IF_NONE, kIfNotNone = POP_JUMP_IF_NOT_NONE;
#endif

struct Instruction {
  int at, opcode, argument;
};

std::vector<Instruction> instructions_of(PyCodeObject* code) {
  std::vector<Instruction> out;
  const PyRef bytes = checked(PyCode_GetCode(code));
  const auto* units = (const unsigned char*)PyBytes_AS_STRING(bytes.get());
  int argument = 0;
  for (int at = 0; at < static_cast<int>(PyBytes_GET_SIZE(bytes.get())) / 2; ++at) {
    const int opcode = units[2 * at];
    argument = argument << 8 | units[2 * at + 1];
    if (opcode == EXTENDED_ARG) continue;
    if (opcode != CACHE) out.push_back({at, opcode, argument});
    argument = 0;
  }
  return out;
}

// The instructions [first, end) which run only if the global `name` is None or false.
struct Region {
  int name, first, end;
};

// A jump also passes the cache units behind it: few Python versions have them there, and they are no instructions.
std::vector<Region> regions_of(const std::vector<Instruction>& all) {
  std::vector<Region> out;
  const auto number_at = [&](int at) {
    return static_cast<int>(
        std::partition_point(all.begin(), all.end(), [&](const Instruction& i) { return i.at < at; }) - all.begin());
  };
  for (int i = 1; i < static_cast<int>(all.size()); ++i) {
    int asked = i - 1;
#ifdef TO_BOOL
    if (all[asked].opcode == TO_BOOL && asked > 0) --asked;
#endif
    if (all[asked].opcode != LOAD_GLOBAL) continue;
    const int opcode = all[i].opcode, name = all[asked].argument >> 1,
              target = number_at(all[i].at + 1 + all[i].argument);
    if (opcode == kIfTrue || opcode == kIfNotNone) out.push_back({name, i + 1, target});
    if ((opcode == kIfFalse || opcode == kIfNone) && target > 0 && all[target - 1].opcode == RETURN_VALUE)
      out.push_back({name, target, static_cast<int>(all.size())});
  }
  return out;
}

// Names of globals that are stored only in regions where a cached global was found empty.
std::unordered_set<int> kept_by(PyCodeObject* code) {
  const std::vector<Instruction> all = instructions_of(code);
  std::unordered_set<int> kept, others;
  const auto stores = [&](int i, int name) { return all[i].opcode == STORE_GLOBAL && all[i].argument == name; };
  std::vector<Region> regions = regions_of(all);
  std::erase_if(regions, [&](const Region& region) {  // keep regions that fill their global
    for (int i = region.first; i < region.end; ++i)
      if (stores(i, region.name)) return false;
    return true;
  });
  for (int i = 0; i < static_cast<int>(all.size()); ++i) {
    if (all[i].opcode == DELETE_GLOBAL) others.insert(all[i].argument);
    if (all[i].opcode != STORE_GLOBAL) continue;
    const auto holds = [&](const Region& region) { return region.first <= i && i < region.end; };
    (std::any_of(regions.begin(), regions.end(), holds) ? kept : others).insert(all[i].argument);
  }
  std::erase_if(kept, [&](int name) { return others.count(name) != 0; });
  return kept;
}

}  // namespace

bool keeps_for_good(PyCodeObject* code, PyObject* name) {
  if (path_in_torch(code->co_filename).empty()) return false;
  static auto& known =
      *new std::unordered_map<PyObject*, std::pair<PyRef, std::vector<PyRef>>>;  // torch's code is never freed
  auto found = known.find((PyObject*)code);
  if (found == known.end()) {
    std::vector<PyRef> names;
    for (const int kept : kept_by(code)) names.push_back(PyRef::borrow(PyTuple_GET_ITEM(code->co_names, kept)));
    found = known.emplace((PyObject*)code, std::pair(PyRef::borrow((PyObject*)code), std::move(names))).first;
  }
  const std::vector<PyRef>& names = found->second.second;
  return std::any_of(names.begin(), names.end(), [&](const PyRef& kept) { return kept.get() == name; });
}

bool is_kept_in_class(PyObject* name) {
  const std::string_view text = utf8(name);
  return text == "__slotnames__" || text == "___needs_generation_tag_patch";
}

}  // namespace cresset::frontend
