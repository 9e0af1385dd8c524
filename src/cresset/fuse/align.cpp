#include "fuse/align.h"

#include <algorithm>

namespace cresset::fuse {
namespace {

using loop::Dim;
using Substitution = std::unordered_map<sym::VarId, ExprId>;

std::vector<ExprId> extents_of(const std::vector<Dim>& dims) {
  std::vector<ExprId> out;
  for (const Dim& dim : dims) out.push_back(dim.extent);
  return out;
}

void add_roots(sym::ShapeEnv& env, Group& to, const Group& from, const Substitution& substitution) {
  for (Root root : from.roots) {
    for (ExprId& e : root.index) e = env.simplify(env.pool().substitute(e, substitution));
    to.roots.push_back(std::move(root));
  }
}

// Matches runs of dimensions of two groups step by step, and collects the common domain.
class Aligner {
 public:
  Aligner(sym::ShapeEnv& env, IndexVars& vars) : env_(env), vars_(vars) {}

  // The new dimensions take their `kinds` from b.
  bool match(const std::vector<Dim>& a, const std::vector<Dim>& b) {
    const std::optional<Refinement> parts = refine(env_, extents_of(a), extents_of(b));
    if (!parts) return false;
    std::vector<Dim> dims(parts->extents.size());
    for (size_t p = 0; p < dims.size(); ++p) dims[p].extent = parts->extents[p];
    name_whole(a, parts->of_a, dims);
    name_whole(b, parts->of_b, dims);
    for (size_t p = 0; p < dims.size(); ++p)
      if (!dims[p].var.valid()) dims[p].var = unused_var(dims[p].extent, p, dims);
    for (size_t d = 0; d < b.size(); ++d)
      for (size_t p : parts->of_b[d]) dims[p].kind = b[d].kind;
    express(a, parts->of_a, dims, of_a);
    express(b, parts->of_b, dims, of_b);
    common.insert(common.end(), dims.begin(), dims.end());
    return true;
  }

  std::vector<Dim> common;
  Substitution of_a, of_b;
  std::vector<Dim> beside;  // unchanged dimensions which will accompany the common dimensions

 private:
  // Groups share variables where their loops are equal. A variable which already names a loop must not name a second
  // loop.
  bool is_taken(sym::VarId var, const std::vector<Dim>& dims) const {
    const auto named = [var](const Dim& dim) { return dim.var == var; };
    return std::any_of(dims.begin(), dims.end(), named) || std::any_of(common.begin(), common.end(), named) ||
           std::any_of(beside.begin(), beside.end(), named);
  }
  sym::VarId unused_var(ExprId extent, size_t number, const std::vector<Dim>& dims) {
    for (;; ++number) {
      const sym::VarId var = vars_.at(extent, number);
      if (!is_taken(var, dims)) return var;
    }
  }
  // A part covering a whole dimension keeps its variable.
  void name_whole(const std::vector<Dim>& from, const std::vector<std::vector<size_t>>& parts, std::vector<Dim>& dims) {
    for (size_t d = 0; d < from.size(); ++d)
      if (parts[d].size() == 1 && !dims[parts[d][0]].var.valid() && !is_taken(from[d].var, dims))
        dims[parts[d][0]].var = from[d].var;
  }
  void express(const std::vector<Dim>& from, const std::vector<std::vector<size_t>>& parts,
               const std::vector<Dim>& dims, Substitution& substitution) {
    for (size_t d = 0; d < from.size(); ++d) {
      std::vector<ExprId> vars, extents;
      for (size_t p : parts[d]) vars.push_back(env_.pool().var(dims[p].var)), extents.push_back(dims[p].extent);
      substitution[from[d].var] = combine(env_.pool(), vars, extents);
    }
  }
  sym::ShapeEnv& env_;
  IndexVars& vars_;
};

struct Split {
  std::vector<Dim> outer, inner;
};
Split split(const Group& group) {
  Split out;
  for (const Dim& dim : group.dims) (dim.kind == Dim::Kind::Outer ? out.outer : out.inner).push_back(dim);
  return out;
}

Group joined(sym::ShapeEnv& env, const Aligner& aligner, const Group& a, const Group& b) {
  Group out;
  out.dims = aligner.common;
  add_roots(env, out, a, aligner.of_a);
  add_roots(env, out, b, aligner.of_b);
  return out;
}

// `a` has no Inner dimensions.
std::optional<Group> align_flat(sym::ShapeEnv& env, IndexVars& vars, const Group& a, const Group& b, bool swapped) {
  const auto finish = [&](const Aligner& aligner) {
    Group out = joined(env, aligner, a, b);
    if (swapped)
      std::rotate(out.roots.begin(), out.roots.begin() + static_cast<std::ptrdiff_t>(a.roots.size()), out.roots.end());
    return out;
  };
  Aligner whole(env, vars);
  if (whole.match(a.dims, b.dims)) return finish(whole);
  const Split sides = split(b);
  Aligner rows(env, vars);
  rows.beside = sides.inner;
  if (sides.inner.empty() || !rows.match(a.dims, sides.outer)) return std::nullopt;
  for (const Dim& dim : sides.inner) rows.common.push_back(dim);
  return finish(rows);
}

// Whether each point of the domain, or of its rows, corresponds to exactly one element of each root.
bool covers(sym::ShapeEnv& env, const Graph& graph, const Group& group) {
  const Split sides = split(group);
  for (const Root& root : group.roots) {
    const std::vector<ExprId>& sizes = graph.type(root.value).sizes;
    if (!invert(env, group.dims, root.index, sizes, root.index) &&
        !invert(env, sides.outer, root.index, sizes, root.index))
      return false;
  }
  return true;
}

// Splits each loop of whose variable a component of `index` is a quotient: of a channel, its group. The components are
// then numbers of whole loops.
void split_loops(sym::ShapeEnv& env, IndexVars& vars, Group& group, Index& index) {
  sym::ExprPool& pool = env.pool();
  const auto unused = [&](ExprId extent) {
    for (size_t number = 0;; ++number) {
      const sym::VarId var = vars.at(extent, number);
      if (std::none_of(group.dims.begin(), group.dims.end(), [&](const Dim& dim) { return dim.var == var; }))
        return var;
    }
  };
  for (size_t k = 0; k < index.size(); ++k) {
    if (pool[index[k]].kind != sym::Kind::FloorDiv) continue;
    const ExprId divided = pool.operands(index[k])[0], divisor = pool.operands(index[k])[1];
    const auto dim = std::find_if(group.dims.begin(), group.dims.end(),
                                  [&](const Dim& d) { return pool.is_var(divided) && d.var == pool.var_of(divided); });
    if (dim == group.dims.end()) continue;
    const std::optional<ExprId> quotient = exact_quotient(env, dim->extent, divisor);
    if (!quotient) continue;
    const Dim low{unused(divisor), divisor, dim->kind};
    const sym::VarId whole = std::exchange(dim->var, low.var);  // taken, while the other variable is chosen
    const Dim high{unused(*quotient), *quotient, dim->kind};
    *dim = high;
    group.dims.insert(std::next(dim), low);
    const ExprId number = pool.add(pool.mul(pool.var(high.var), divisor), pool.var(low.var));
    const Substitution parts{{whole, number}};
    for (ExprId& e : index) e = env.simplify(pool.substitute(e, parts));
    for (Root& root : group.roots)
      for (ExprId& e : root.index) e = env.simplify(pool.substitute(e, parts));
  }
}

// Moves `flat` to the domain of `fixed`, given the indices at which both refer to the same element.
std::optional<Group> move_onto(const Graph& graph, IndexVars& vars, Group flat, Index in_flat, const Group& fixed,
                               const Index& in_fixed, const std::vector<ExprId>& sizes) {
  split_loops(graph.env(), vars, flat, in_flat);
  const auto solution = invert(graph.env(), flat.dims, in_flat, sizes, in_fixed);
  if (!solution) return std::nullopt;
  Group moved;
  moved.dims = fixed.dims;
  add_roots(graph.env(), moved, flat, *solution);
  if (!covers(graph.env(), graph, moved)) return std::nullopt;
  moved.roots.insert(moved.roots.end(), fixed.roots.begin(), fixed.roots.end());
  return moved;
}

}  // namespace

std::optional<Group> align_in_order(sym::ShapeEnv& env, IndexVars& vars, const Group& a, const Group& b) {
  if (!a.has_inner()) return align_flat(env, vars, a, b, false);
  if (!b.has_inner()) return align_flat(env, vars, b, a, true);
  const Split x = split(a), y = split(b);
  Aligner aligner(env, vars);
  if (!aligner.match(x.outer, y.outer) || !aligner.match(x.inner, y.inner)) return std::nullopt;
  return joined(env, aligner, a, b);
}

std::optional<Group> align_through(const Build& build, const Group& producer, const Group& consumer, ValueId value) {
  const Root* root = nullptr;
  for (const Root& r : producer.roots)
    if (r.value == value && r.into == value) root = &r;
  if (root == nullptr) return std::nullopt;
  const std::optional<Index> asked = asked_index(build, consumer, value);
  if (!asked) return std::nullopt;
  const std::vector<ExprId>& sizes = build.graph.type(value).sizes;
  IndexVars& vars = build.memory.index_vars();
  if (!producer.has_inner()) {
    if (auto group = move_onto(build.graph, vars, producer, root->index, consumer, *asked, sizes)) return group;
  }
  if (!consumer.has_inner()) return move_onto(build.graph, vars, consumer, *asked, producer, root->index, sizes);
  return std::nullopt;
}

}  // namespace cresset::fuse
