#include "lower/generalize.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "base/log.h"
#include "loop/collapse.h"

namespace cresset::lower {
namespace {

using loop::Dim;
using loop::Kernel;
using sym::ExprId;
using sym::Kind;
using sym::VarId;

constexpr int64_t kTinyCoefficient = 4;
constexpr int64_t kShortLoop = 16;
constexpr int64_t kTypicalSize = 4096;  // a parameter's hint when its size is data-dependent

class Generalizer {
 public:
  explicit Generalizer(const Kernel& kernel)
      : old_(kernel), env_(kernel.env()), pool_(env_.pool()), new_env_(std::make_shared<sym::ShapeEnv>()) {
    out_.kernel = std::make_shared<Kernel>(new_env_);
  }

  GeneralKernel run() {
    loop::IndexSpace space = loop::collapsed_space(old_);
    const auto is_scan = [](const loop::Scalar& s) { return s.op == loop::Op::Scan; };
    if (space.position.valid() || std::any_of(old_.scalars.begin(), old_.scalars.end(), is_scan)) space = as_written();
    add_loops(space);
    for (const loop::Binding& b : old_.bindings)
      indices_.emplace(b.var, new_env_->new_ranged_var(sym::Interval::all()));
    Kernel& kernel = *out_.kernel;
    kernel.buffers = old_.buffers;
    for (size_t i = 0; i < old_.scalars.size(); ++i) {
      loop::Scalar scalar = old_.scalars[i];
      if (scalar.expr.valid()) scalar.expr = translate(space.scalar[i]);
      moved_.push_back(kernel.add(with_operands(scalar)));
    }
    for (size_t i = 0; i < old_.stores.size(); ++i) {
      const loop::Store& store = old_.stores[i];
      const loop::ScalarId condition = store.condition.valid() ? moved_[store.condition.index] : loop::ScalarId{};
      kernel.stores.push_back(
          {store.buffer, translate(space.store[i]), moved_[store.value.index], condition, store.combine});
    }
    for (const loop::Binding& b : old_.bindings)
      kernel.bindings.push_back({new_pool().var_of(indices_.at(b.var)), moved_[b.scalar.index]});
    for (VarId var : kernel.size_symbols()) out_.arguments.push_back(meaning_.at(var));
    return std::move(out_);
  }

 private:
  sym::ExprPool& new_pool() { return new_env_->pool(); }

  // Returns the original loops, because reordered loops would change a position.
  loop::IndexSpace as_written() {
    loop::IndexSpace space;
    for (const Dim& dim : old_.dims) {
      const bool inner = dim.kind == Dim::Kind::Inner;
      (inner ? space.inner : space.outer).push_back({dim.var, dim.extent, inner});
    }
    for (const loop::Scalar& s : old_.scalars) space.scalar.push_back(s.expr);
    for (const loop::Store& s : old_.stores) space.store.push_back(s.address);
    return space;
  }

  void add_loops(const loop::IndexSpace& space) {
    for (const auto* loops : {&space.outer, &space.inner}) {
      for (const loop::Loop& loop : *loops) {
        const ExprId extent = size(loop.extent, kShortLoop);
        const ExprId index = new_env_->new_index_var(extent);
        indices_.emplace(loop.var, index);
        out_.kernel->dims.push_back(
            {new_pool().var_of(index), extent, loop.inner ? Dim::Kind::Inner : Dim::Kind::Outer});
      }
    }
  }
  loop::Scalar with_operands(loop::Scalar scalar) const {
    for (loop::ScalarId* operand : {&scalar.a, &scalar.b, &scalar.c})
      if (operand->valid()) *operand = moved_[operand->index];
    return scalar;
  }

  bool is_size(ExprId e) {
    if (const auto known = is_size_.find(e); known != is_size_.end()) return known->second;
    std::vector<VarId> vars;
    pool_.collect_vars(e, vars);
    bool size = true;
    for (VarId var : vars) size &= indices_.count(var) == 0;
    return is_size_.emplace(e, size).first->second;
  }

  // Returns a parameter for a size expression. Constants up to `most_kept` stay numbers.
  ExprId size(ExprId e, int64_t most_kept) {
    if (pool_.is_const(e) && std::abs(pool_.const_value(e)) <= most_kept)
      return new_pool().constant(pool_.const_value(e));
    if (const auto known = parameters_.find(e); known != parameters_.end()) return known->second;
    const sym::Interval range = env_.range(e);
    sym::Interval sign = sym::Interval::all();
    if (range.lo >= 0) sign = sym::Interval::size();
    if (range.lo >= 1) sign.lo = 1;
    const ExprId parameter = new_env_->new_backed("", env_.typical_or(e, kTypicalSize), sym::Interval::all());
    const VarId var = new_pool().var_of(parameter);
    new_env_->constrain(var, sign);
    meaning_.emplace(var, e);
    parameters_.emplace(e, parameter);
    return parameter;
  }

  ExprId translate(ExprId e) {
    if (is_size(e)) return size(e, kTinyCoefficient);
    if (const auto known = translated_.find(e); known != translated_.end()) return known->second;
    const ExprId now = translate_indexed(e);
    translated_.emplace(e, now);
    return now;
  }

  ExprId translate_indexed(ExprId e) {
    switch (pool_[e].kind) {
      case Kind::Var:
        return indices_.at(pool_.var_of(e));
      case Kind::Add:
      case Kind::Mul:
        return translate_sum(e);
      case Kind::FloorDiv:
        return new_pool().floor_div(translate(operand(e, 0)), divisor(operand(e, 1)));
      case Kind::Mod:
        return new_pool().mod(translate(operand(e, 0)), divisor(operand(e, 1)));
      default:
        return translate_logic(e);
    }
  }

  ExprId operand(ExprId e, size_t i) const { return pool_.operands(e)[i]; }
  ExprId divisor(ExprId e) { return pool_.is_const(e) ? new_pool().constant(pool_.const_value(e)) : translate(e); }

  ExprId translate_logic(ExprId e) {
    const auto joined = [&](auto&& join) {
      ExprId all = translate(operand(e, 0));
      for (size_t i = 1; i < pool_[e].count; ++i) all = join(all, translate(operand(e, i)));
      return all;
    };
    sym::ExprPool& p = new_pool();
    switch (pool_[e].kind) {
      case Kind::Min:
        return joined([&](ExprId a, ExprId b) { return p.min(a, b); });
      case Kind::Max:
        return joined([&](ExprId a, ExprId b) { return p.max(a, b); });
      case Kind::And:
        return joined([&](ExprId a, ExprId b) { return p.logical_and(a, b); });
      case Kind::Or:
        return joined([&](ExprId a, ExprId b) { return p.logical_or(a, b); });
      case Kind::Eq:
        return joined([&](ExprId a, ExprId b) { return p.eq(a, b); });
      case Kind::Ne:
        return joined([&](ExprId a, ExprId b) { return p.ne(a, b); });
      case Kind::Lt:
        return joined([&](ExprId a, ExprId b) { return p.lt(a, b); });
      case Kind::Le:
        return joined([&](ExprId a, ExprId b) { return p.le(a, b); });
      default:
        CRESSET_CHECK(false, "an index expression of an unknown kind");
    }
    return {};
  }

  // sum of (size factors) * (factors with indices): the size factors of equal index parts become a single coefficient.
  ExprId translate_sum(ExprId e) {
    sym::TermList terms;
    pool_.terms(e, terms);
    std::vector<std::pair<std::vector<ExprId>, ExprId>> parts;  // index factors -> coefficient
    for (const sym::Term& term : terms) {
      std::vector<ExprId> indexed;
      ExprId coefficient = pool_.constant(term.coefficient);
      const std::span<const ExprId> factors =
          term.monomial.valid() ? pool_.factors(term.monomial) : std::span<const ExprId>();
      const std::vector<ExprId> atoms(factors.begin(), factors.end());  // the pool may grow below
      for (ExprId factor : atoms) {
        if (is_size(factor))
          coefficient = pool_.mul(coefficient, factor);
        else
          indexed.push_back(factor);
      }
      add_part(parts, std::move(indexed), coefficient);
    }
    ExprId sum = new_pool().constant(0);
    for (const auto& [indexed, coefficient] : parts) {
      ExprId product = size(coefficient, kTinyCoefficient);
      for (ExprId factor : indexed) product = new_pool().mul(product, translate(factor));
      sum = new_pool().add(sum, product);
    }
    return sum;
  }

  void add_part(std::vector<std::pair<std::vector<ExprId>, ExprId>>& parts, std::vector<ExprId> indexed,
                ExprId coefficient) {
    for (auto& part : parts) {
      if (part.first != indexed) continue;
      part.second = pool_.add(part.second, coefficient);
      return;
    }
    parts.emplace_back(std::move(indexed), coefficient);
  }

  const Kernel& old_;
  sym::ShapeEnv& env_;
  sym::ExprPool& pool_;
  std::shared_ptr<sym::ShapeEnv> new_env_;
  GeneralKernel out_;
  std::unordered_map<VarId, ExprId> indices_;  // loop and bound variables: old -> new
  std::unordered_map<ExprId, bool> is_size_;
  std::unordered_map<ExprId, ExprId> parameters_, translated_;  // old -> new
  std::unordered_map<VarId, ExprId> meaning_;                   // parameter -> old
  std::vector<loop::ScalarId> moved_;
};

}  // namespace

namespace {

size_t mixed(size_t seed, size_t value) { return (seed ^ value) * 0x9E3779B97F4A7C15ull + (seed >> 29); }

// Equal kernels have equal hashes.
size_t hash_of(const Kernel& kernel) {
  size_t h = mixed(kernel.dims.size(), kernel.buffers.size());
  for (const Dim& dim : kernel.dims) h = mixed(mixed(h, dim.var.index), dim.extent.index);
  for (const loop::Scalar& s : kernel.scalars)
    h = mixed(mixed(h, static_cast<size_t>(s.op) << 32 | s.expr.index), s.a.index);
  for (const loop::Store& s : kernel.stores)
    h = mixed(mixed(mixed(h, s.address.index), s.value.index), s.condition.index);
  return h;
}

// Compares variables, expressions and numbers. Buffer names appear only in logs and are compared only when kernels are
// logged.
bool same(const Kernel& a, const Kernel& b) {
  const bool names = log::enabled(log::Area::Kernels);
  return &a.env() == &b.env() &&
         std::ranges::equal(a.scalars, b.scalars,
                            [](const loop::Scalar& x, const loop::Scalar& y) {  // 0 and -0 differ
                              return x == y && std::bit_cast<uint64_t>(x.number) == std::bit_cast<uint64_t>(y.number);
                            }) &&
         std::ranges::equal(
             a.dims, b.dims,
             [](const Dim& x, const Dim& y) { return x.var == y.var && x.extent == y.extent && x.kind == y.kind; }) &&
         std::ranges::equal(a.buffers, b.buffers,
                            [&](const loop::Buffer& x, const loop::Buffer& y) {
                              return x.dtype == y.dtype && x.written == y.written && x.read == y.read &&
                                     x.by_value == y.by_value && (!names || x.name == y.name);
                            }) &&
         std::ranges::equal(a.stores, b.stores,
                            [](const loop::Store& x, const loop::Store& y) {
                              return x.buffer == y.buffer && x.address == y.address && x.value == y.value &&
                                     x.condition == y.condition && x.combine == y.combine;
                            }) &&
         std::ranges::equal(a.bindings, b.bindings, [](const loop::Binding& x, const loop::Binding& y) {
           return x.var == y.var && x.scalar == y.scalar;
         });
}

}  // namespace

GeneralKernel generalize(const Kernel& kernel) { return Generalizer(kernel).run(); }

const GeneralKernel& Generalized::of(std::shared_ptr<const Kernel> kernel) {
  const size_t hash = hash_of(*kernel);
  const auto [begin, end] = known_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (same(*it->second.kernel, *kernel)) return it->second.general;
  GeneralKernel general = generalize(*kernel);
  return known_.emplace(hash, Known{std::move(kernel), std::move(general)})->second.general;
}

}  // namespace cresset::lower
