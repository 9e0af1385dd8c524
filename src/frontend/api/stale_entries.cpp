#include "frontend/api/stale_entries.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "frontend/api/compiled_function.h"
#include "frontend/guards/torch_modes.h"

namespace cresset::frontend {
namespace {

std::unordered_set<CompiledFunction*>& live_functions() {
  static auto& functions = *new std::unordered_set<CompiledFunction*>;
  return functions;
}

// For each object which may be dead: the number of references from compiled functions.
using Counts = std::unordered_map<PyObject*, Py_ssize_t>;

// Classes and modules live for the whole process. Plain tensors belong to the program. Guards on the contents of a set
// keep a frozen copy that nobody else holds.
bool may_be_gone(PyObject* object) {
  return PyType_SUPPORTS_WEAKREFS(Py_TYPE(object)) && !PyType_Check(object) && !PyModule_Check(object) &&
         !PyFrozenSet_CheckExact(object) && !is_plain_tensor(object) && !is_enum_member(object);
}

int add_candidate(PyObject* object, void* counts) {
  if (may_be_gone(object)) static_cast<Counts*>(counts)->try_emplace(object);
  return 0;
}

int count_known(PyObject* object, void* counts) {
  Counts& known = *static_cast<Counts*>(counts);
  if (const auto found = known.find(object); found != known.end()) ++found->second;
  return 0;
}

int is_gone(PyObject* object, void* gone) {
  return static_cast<const std::unordered_set<PyObject*>*>(gone)->contains(object) ? 1 : 0;
}

// Visits the guarded objects of an entry, without the objects of its reconstruction.
int visit_checked(const CacheEntry& entry, visitproc visit, void* arg) {
  if (const int r = frontend::visit(entry.args, visit, arg)) return r;
  if (const int r = frontend::visit(entry.kwargs, visit, arg)) return r;
  return entry.guards.visit(visit, arg);
}

// Marks the argument paths as varying, as if another object had arrived while the first was alive.
void learn_of_gone(const ArgSpec& spec, const std::unordered_set<PyObject*>& gone,
                   AutomaticDynamic& automatic_dynamic) {
  if (spec.kind == ArgSpec::Kind::Identity && gone.contains(spec.object.get()) && !is_module(spec.object.get()) &&
      std::find(automatic_dynamic.objects.begin(), automatic_dynamic.objects.end(), spec.path) ==
          automatic_dynamic.objects.end())
    automatic_dynamic.objects.push_back(spec.path);
  for (const ArgSpec& child : spec.children) learn_of_gone(child, gone, automatic_dynamic);
}

int64_t captures_since = 0, cache_entries_then = 0;

}  // namespace

void add_live_function(CompiledFunction* function) { live_functions().insert(function); }
void remove_live_function(CompiledFunction* function) { live_functions().erase(function); }

// Entries which die may run Python code, which makes and releases compiled functions. A function which is gone by then
// is no longer in the registry.
void clear_live_functions() {
  const std::vector<CompiledFunction*> functions(live_functions().begin(), live_functions().end());
  for (CompiledFunction* function : functions)
    if (live_functions().contains(function)) function->clear_cache_entries();
}

int64_t drop_of_gone_models() {
  captures_since = cache_entries_then = 0;
  Counts held;
  for (const CompiledFunction* function : live_functions()) {
    cache_entries_then += static_cast<int64_t>(function->cache_entries().size());
    for (const auto& entry : function->cache_entries()) visit_checked(*entry, &add_candidate, &held);
  }
  // the compiled function itself may still be called
  for (const CompiledFunction* function : live_functions()) held.erase(function->function());
  for (const CompiledFunction* function : live_functions()) function->visit(&count_known, &held);
  std::unordered_set<PyObject*> gone;
  for (const auto& [object, count] : held)
    if (count == Py_REFCNT(object)) gone.insert(object);
  if (gone.empty()) return 0;
  std::vector<std::shared_ptr<CacheEntry>> dropped;  // they die when all tables are in order again
  const auto take = [&](CacheEntries& among, AutomaticDynamic& automatic_dynamic) {
    const auto taken = among.extract_if(
        [&](const auto& entry) { return entry.use_count() <= 1 && visit_checked(*entry, &is_gone, &gone) != 0; });
    for (const auto& entry : taken) {
      learn_of_gone(entry->args, gone, automatic_dynamic);
      learn_of_gone(entry->kwargs, gone, automatic_dynamic);
    }
    dropped.insert(dropped.end(), taken.begin(), taken.end());
  };
  for (CompiledFunction* function : live_functions()) {
    take(function->cache_entries_, function->dynamic_);
    for (const std::shared_ptr<ResumePoint>& point : function->points_)
      take(point->resume_entries, point->automatic_dynamic);
  }
  return static_cast<int64_t>(dropped.size());
}

void drop_of_gone_models_locked() {
  constexpr int64_t kShare = 8;  // the next search happens after more captures than 1/kShare of the entries
  if (++captures_since * kShare > cache_entries_then) drop_of_gone_models();
}

}  // namespace cresset::frontend
