#include "frontend/gone_models.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "frontend/compiled_function.h"
#include "frontend/state_guard.h"

namespace cresset::frontend {
namespace {

std::unordered_set<CompiledFunction*>& live_functions() {
  static auto& functions = *new std::unordered_set<CompiledFunction*>;
  return functions;
}

using Counts = std::unordered_map<PyObject*, Py_ssize_t>;

// Notes in a Counts how often each model is held.
int count_model(PyObject* object, void* counts) {
  if (is_module(object)) ++(*static_cast<Counts*>(counts))[object];
  return 0;
}

int is_gone(PyObject* object, void* gone) {
  return static_cast<const std::unordered_set<PyObject*>*>(gone)->contains(object) ? 1 : 0;
}

// What a variant is checked against, without what it makes of it.
int visit_checked(const Variant& variant, visitproc visit, void* arg) {
  if (const int r = frontend::visit(variant.args, visit, arg)) return r;
  if (const int r = frontend::visit(variant.kwargs, visit, arg)) return r;
  return variant.facts.visit(visit, arg);
}

int64_t captures_since = 0, variants_then = 0;

}  // namespace

void add_live_function(CompiledFunction* function) { live_functions().insert(function); }
void remove_live_function(CompiledFunction* function) { live_functions().erase(function); }

int64_t drop_of_gone_models() {
  captures_since = variants_then = 0;
  Counts held, checked;
  for (const CompiledFunction* function : live_functions()) {
    function->visit(&count_model, &held);
    variants_then += static_cast<int64_t>(function->variants().size());
    for (const auto& variant : function->variants()) visit_checked(*variant, &count_model, &checked);
  }
  std::unordered_set<PyObject*> gone;
  for (const auto& [model, _] : checked) {
    const auto count = held.find(model);
    if (count != held.end() && count->second == Py_REFCNT(model)) gone.insert(model);
  }
  if (gone.empty()) return 0;
  Variants dropped;  // they die when all tables are in order again
  const auto take = [&](Variants& among) {
    const auto first = std::stable_partition(among.begin(), among.end(), [&](const auto& variant) {
      return variant.use_count() > 1 || visit_checked(*variant, &is_gone, &gone) == 0;
    });
    dropped.insert(dropped.end(), first, among.end());
    among.erase(first, among.end());
  };
  for (CompiledFunction* function : live_functions()) {
    take(function->variants_);
    for (const std::shared_ptr<Point>& point : function->points_) take(point->successors);
  }
  return static_cast<int64_t>(dropped.size());
}

void drop_of_gone_models_in_turn() {
  constexpr int64_t kShare = 8;  // of the variants there are: so many captures later it is looked again
  if (++captures_since * kShare > variants_then) drop_of_gone_models();
}

}  // namespace cresset::frontend
