// The known sizes of compiled functions, for cresset.shapes and cresset.solve.
#include "python/shapes.h"

#include <pybind11/stl.h>

#include <map>
#include <span>
#include <tuple>

#include "python/state_of.h"
#include "sym/explain.h"
#include "sym/rebuild.h"
#include "sym/solve.h"

namespace py = pybind11;

namespace cresset::python {
namespace {

using bridge::SymbolBinding;
using runtime::SymbolSource;
using Key = std::tuple<int, uint32_t, uint32_t>;  // kind, position, dimension

// The kind of a symbol in a solution. A solution may choose sizes; strides follow from sizes or keep their values.
const char* kind_name(const SymbolBinding& s, size_t tensors) {
  if (s.source.kind == SymbolSource::Kind::IntArgument) return "int";
  if (s.source.kind == SymbolSource::Kind::InputSize && s.source.position < tensors) return "size";
  const bool data = s.source.kind == SymbolSource::Kind::InputSize || s.source.kind == SymbolSource::Kind::Element;
  return data ? "data" : "fixed";
}

Key key_of(const SymbolBinding& s) { return {static_cast<int>(s.source.kind), s.source.position, s.source.dim}; }

sym::Interval natural(const sym::Symbol& s) { return s.range.lo >= 0 ? sym::Interval::size() : sym::Interval::all(); }

// A solver over the guards of a cache entry. Symbols which cannot be chosen keep their hints.
sym::Solver solver_of(bridge::GuardedProgram& entry) {
  sym::ShapeEnv& env = *entry.env();
  sym::Solver solver(env.pool());
  for (const SymbolBinding& s : entry.symbols()) {
    const sym::Symbol* symbol = env.symbol(s.var);
    if (symbol == nullptr || !symbol->hint) continue;
    const bool chosen = std::string(kind_name(s, entry.tensor_count())) != "fixed";
    solver.declare(s.var, chosen ? natural(*symbol) : sym::Interval::point(*symbol->hint));
  }
  for (const sym::SizeGuard& guard : entry.guards()) solver.require(guard.condition);
  return solver;
}

py::object end_of_range(int64_t end) {
  const bool infinite = end == sym::Interval::kNegInf || end == sym::Interval::kPosInf;
  return infinite ? py::object(py::none()) : py::object(py::int_(end));
}

py::dict dimension(bridge::GuardedProgram& entry, const SymbolBinding& s, sym::Solver& solver) {
  const sym::Symbol& symbol = *entry.env()->symbol(s.var);
  py::dict row;
  row["source"] = symbol.source;
  row["name"] = symbol.name;
  row["kind"] = kind_name(s, entry.tensor_count());
  row["position"] = s.source.position;
  row["dim"] = s.source.dim;
  row["hint"] = symbol.hint ? py::object(py::int_(*symbol.hint)) : py::object(py::none());
  if (!symbol.hint) return row;
  const sym::ValidRange range = solver.valid_range(s.var);
  row["low"] = end_of_range(range.ends.lo);
  row["high"] = end_of_range(range.ends.hi);
  row["step"] = range.step;
  row["remainder"] = range.remainder;
  return row;
}

// Returns the position of the earlier tensor which must be the same tensor and whose sizes are reported instead; -1:
// none.
int32_t earlier_of(const bridge::GuardedProgram& entry, const SymbolBinding& s) {
  using Kind = runtime::SymbolSource::Kind;
  const bool of_tensor = s.source.kind == Kind::InputSize || s.source.kind == Kind::InputStride;
  return of_tensor && s.source.position < entry.tensor_count() ? entry.same_as(s.source.position) : -1;
}

py::list assigned(bridge::GuardedProgram& entry, const sym::Assignment& values) {
  py::list out;
  for (const SymbolBinding& s : entry.symbols()) {
    const auto it = values.find(s.var);
    if (it == values.end()) continue;
    out.append(py::make_tuple(kind_name(s, entry.tensor_count()), s.source.position, s.source.dim, it->second));
  }
  return out;
}

py::list shape_report(const py::object& function) {
  py::list out;
  const frontend::CacheEntries all =
      state_of(function).cache_entries();  // a copy: creating objects may remove cache entries
  for (const auto& cache_entry : all) {
    py::dict row;
    row["eager_reason"] = cache_entry->eager_reason.text();
    if (cache_entry->program != nullptr) {
      bridge::GuardedProgram& entry = *cache_entry->program;
      sym::Solver solver = solver_of(entry);
      py::list dimensions, same, guards, asked, assertions;
      const std::vector<std::string> names = entry.input_names();
      for (const SymbolBinding& s : entry.symbols()) {
        py::dict d = dimension(entry, s, solver);
        d["of_same"] = earlier_of(entry, s) >= 0;
        dimensions.append(std::move(d));
      }
      for (size_t i = 0; i < names.size(); ++i)
        if (const int32_t earlier = entry.same_as(i); earlier >= 0)
          same.append(names[i] + " is " + names[static_cast<size_t>(earlier)]);
      for (const sym::SizeGuard& guard : entry.guards()) {
        std::vector<sym::VarId> vars;
        entry.env()->pool().collect_vars(guard.condition, vars);
        guards.append(py::make_tuple(sym::describe(*entry.env(), guard), vars.size()));
      }
      for (const std::string& text : entry.float_guard_texts()) guards.append(py::make_tuple(text, 0));
      for (const sym::SizeGuard& guard : entry.env()->guards()) asked.append(sym::describe(*entry.env(), guard));
      for (const sym::RuntimeAssertion& a : entry.env()->assertions()) assertions.append(a.message);
      row["dimensions"] = dimensions;
      row["same"] = same;
      row["guards"] = guards;
      row["asked"] = asked;
      row["assertions"] = assertions;
      const sym::Solution smallest = solver.smallest();
      row["smallest"] = smallest.found() ? py::object(assigned(entry, smallest.values)) : py::object(py::none());
    }
    out.append(row);
  }
  return out;
}

// Returns sizes accepted by a cache entry, or None when none were found.
py::object sample_sizes(const py::object& function, size_t cache_entry, uint64_t seed, int64_t spread) {
  const frontend::CacheEntries cache_entries = state_of(function).cache_entries();
  if (cache_entry >= cache_entries.size() || cache_entries[cache_entry]->program == nullptr) return py::none();
  bridge::GuardedProgram& entry = *cache_entries[cache_entry]->program;
  const sym::Solution found = solver_of(entry).sample(seed, spread);
  return found.found() ? py::object(assigned(entry, found.values)) : py::object(py::none());
}

using Sizes = std::vector<std::tuple<std::string, uint32_t, uint32_t, int64_t>>;  // kind, position, dimension, value

// A class of sizes: accepted by a cache entry, or used in a call which raised.
struct Class {
  sym::ShapeEnv& env;
  const std::vector<SymbolBinding>& symbols;
  std::span<const sym::SizeGuard> guards;
  size_t tensors;  // of a call
  bool raised = false;
};

// The conditions of all classes over common variables.
class Outside {
 public:
  void add(const Class& c) {
    std::unordered_map<sym::VarId, sym::ExprId> here;
    for (const SymbolBinding& s : c.symbols) {
      const sym::Symbol* symbol = c.env.symbol(s.var);
      if (symbol != nullptr && symbol->hint) here.emplace(s.var, variable(s, *symbol, c.tensors));
    }
    std::vector<sym::ExprId> conditions;
    for (const sym::SizeGuard& guard : c.guards) {
      if (guard.reason.op == sym::kTextOfNumber && c.raised) continue;  // belongs to the error's message
      if (auto there = sym::transfer(c.env.pool(), guard.condition, pool_, here)) conditions.push_back(*there);
    }
    classes_.push_back(std::move(conditions));
  }

  void add_point(const Sizes& sizes) { classes_.push_back(equalities(sizes)); }

  // near: the sizes from which the solution should differ in as few sizes as possible.
  sym::Solution solve(const Sizes& near) {
    for (const auto& conditions : classes_) solver_.exclude(conditions);
    const std::vector<sym::ExprId> stay = equalities(near);
    for (size_t distance = 0; distance < stay.size(); ++distance)  // 0: a single size changes, otherwise two
      for (size_t a = 0; a + distance < stay.size(); ++a) {
        sym::Solver solver = solver_;
        for (size_t i = 0; i < stay.size(); ++i)
          if (i != a && i != a + distance) solver.require(stay[i]);
        if (sym::Solution found = solver.smallest(); found.found()) return found;
      }
    return solver_.smallest();
  }

  py::list sizes(const sym::Solution& found) const {
    py::list out;
    for (const auto& [key, variable] : vars_) {
      const int64_t value = found.values.at(pool_.var_of(variable.expr));
      out.append(py::make_tuple(variable.kind, std::get<1>(key), std::get<2>(key), value));
    }
    return out;
  }

 private:
  std::vector<sym::ExprId> equalities(const Sizes& sizes) {
    std::vector<sym::ExprId> out;
    for (const auto& [kind, position, dim, value] : sizes) {
      const auto source = kind == "int" ? SymbolSource::Kind::IntArgument : SymbolSource::Kind::InputSize;
      const auto it = vars_.find({static_cast<int>(source), position, dim});
      if (kind != "fixed" && it != vars_.end()) out.push_back(pool_.eq(it->second.expr, pool_.constant(value)));
    }
    return out;
  }

  struct Variable {
    sym::ExprId expr;
    const char* kind;
  };

  sym::ExprId variable(const SymbolBinding& s, const sym::Symbol& symbol, size_t tensors) {
    auto [it, fresh] = vars_.try_emplace(key_of(s), Variable{});
    if (!fresh) return it->second.expr;
    it->second = {pool_.var(pool_.new_var()), kind_name(s, tensors)};
    const bool fixed = std::string(it->second.kind) == "fixed";
    solver_.declare(pool_.var_of(it->second.expr), fixed ? sym::Interval::point(*symbol.hint) : natural(symbol));
    return it->second.expr;
  }

  sym::ExprPool pool_;
  sym::Solver solver_{pool_};
  std::map<Key, Variable> vars_;
  std::vector<std::vector<sym::ExprId>> classes_;
};

// Returns (status, sizes) with the smallest sizes accepted by no cache entry. Sizes for which a call raised because of
// sizes alone are excluded, and so are `others`. status is "found", "covered" or "gave up". near: sizes to change as
// little as possible, instead of taking the smallest.
py::tuple sizes_outside(const py::object& function, const std::vector<Sizes>& others, const Sizes& near) {
  Outside outside;
  const auto& state = state_of(function);
  bool any = false;
  const frontend::CacheEntries all = state.cache_entries();
  for (const auto& cache_entry : all) {
    if (cache_entry->program == nullptr) continue;
    any = true;
    bridge::GuardedProgram& entry = *cache_entry->program;
    outside.add({*entry.env(), entry.symbols(), entry.guards(), entry.tensor_count()});
  }
  for (const frontend::RejectedSizes& r : state.rejected()) {
    any = true;
    outside.add({*r.env, r.symbols, r.env->guards(), r.tensors, true});
  }
  if (!any) return py::make_tuple("gave up", py::none());
  for (const Sizes& sizes : others) outside.add_point(sizes);
  const sym::Solution found = outside.solve(near);
  if (found.found()) return py::make_tuple("found", outside.sizes(found));
  return py::make_tuple(found.status == sym::Solution::Status::None ? "covered" : "gave up", py::none());
}

}  // namespace

void init_shapes(py::module_& m) {
  m.def("shape_report", &shape_report);
  m.def("sample_sizes", &sample_sizes, py::arg("function"), py::arg("variant"), py::arg("seed"),
        py::arg("spread") = 64);
  m.def("sizes_outside", &sizes_outside, py::arg("function"), py::arg("others") = std::vector<Sizes>{},
        py::arg("near") = Sizes{});
}

}  // namespace cresset::python
