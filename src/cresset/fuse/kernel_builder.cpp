#include "fuse/kernel_builder.h"

#include <algorithm>

#include "fuse/strided_view.h"
#include "ops/scan.h"

namespace cresset::fuse {
namespace {

using loop::ScalarId;

struct ElementKey {
  ValueId value;
  Index index;
  ScalarId mask;  // invalid: unconditional
  bool operator==(const ElementKey&) const = default;
};
struct ElementKeyHash {
  size_t operator()(const ElementKey& key) const {
    size_t h = key.value.index * 31u + key.mask.index;
    for (ExprId e : key.index) h = h * 1000003u + e.index;
    return h;
  }
};

class Puller final : public ops::ElementContext {
 public:
  Puller(const Build& build, const Group& group, const BuildLimits* limits)
      : build_(build),
        group_(group),
        limits_(limits),
        kernel_(std::make_unique<loop::Kernel>(build.graph.env_ptr())),
        scalars_(*kernel_) {
    kernel_->dims = group.dims;
    // A window of a value stored by another group is a copy: it loads.
    for (const Root& root : group.roots)
      if (root.into == root.value) roots_[root.value].push_back(&root);
  }

  ScalarId element(ValueId value, const Index& asked) override;
  ScalarId element_where(ScalarId condition, ValueId value, const Index& index) override;
  ops::DataIndex data_index(ScalarId position, ValueId index, ValueId table, size_t dim, bool from_the_end) override;
  loop::ScalarBuilder& scalars() override { return scalars_; }
  const Graph& graph() override { return build_.graph; }
  const TensorType& result_type(size_t result) override { return graph().type(node_->results[result]); }

  bool run();
  BuiltKernel take() { return {std::move(kernel_), std::move(buffers_), std::move(reads_), std::move(reports_)}; }

  // Records the index at which this value is read, instead of computing it.
  void watch(ValueId value) { watched_ = value; }
  const std::vector<Index>& seen() const { return seen_; }

 private:
  ScalarId compute(ValueId value, const Index& index);
  ScalarId reduce(const ops::OpDef& def, const graph::Node& node, size_t result, const Index& index);
  ScalarId scan(const ops::OpDef& def, const graph::Node& node, const Index& index);
  ScalarId pick_part(const graph::Node& node, const Index& index);
  bool may_compute(ValueId value, const Index& index, bool folds);
  Index simplified(ValueId value, Index index);
  bool is_root_at(ValueId value, const Index& index);
  ScalarId load(const Place& place, const Index& index);
  ScalarId round(ScalarId scalar, ValueId value);
  loop::BufferId buffer(ValueId base);
  loop::BufferId report(uint32_t site);
  ScalarId fail(DType dtype) {
    failed_ = true;
    return zero(dtype);
  }
  ScalarId zero(DType dtype) {
    const DType compute = compute_dtype(dtype);
    return is_float(compute) ? scalars_.constant(compute, 0.0) : scalars_.constant_int(compute, 0);
  }
  bool over_limit() const {
    return limits_ != nullptr && (kernel_->scalars.size() > limits_->scalars || buffers_.size() > limits_->buffers ||
                                  reductions_ > limits_->reductions);
  }

  const Build& build_;
  const Group& group_;
  const BuildLimits* limits_;
  std::unique_ptr<loop::Kernel> kernel_;
  loop::ScalarBuilder scalars_;
  std::unordered_map<ValueId, std::vector<const Root*>> roots_;  // several: windows of a single value
  std::unordered_map<ElementKey, ScalarId, ElementKeyHash> memo_;
  std::vector<ValueId> buffers_, reads_;
  std::vector<BuiltKernel::Report> reports_;
  const graph::Node* node_ = nullptr;  // being lowered
  ScalarId mask_;                      // of loads; invalid: none
  size_t reductions_ = 0;
  bool failed_ = false;
  ValueId watched_;
  std::vector<Index> seen_;
};

ScalarId Puller::element(ValueId value, const Index& asked) {
  const TensorType& type = graph().type(value);
  if (failed_ || over_limit()) return fail(type.dtype);
  if (mask_.valid() && is_root_at(value, asked)) {  // computed unconditionally at every point of the group
    const ScalarId outer = std::exchange(mask_, ScalarId{});
    const ScalarId result = element(value, asked);
    mask_ = outer;
    return result;
  }
  ElementKey key{value, simplified(value, asked), mask_};
  if (auto it = memo_.find(key); it != memo_.end()) return it->second;
  ScalarId result;
  const Place* place = nullptr;
  if (value == watched_) {
    seen_.push_back(key.index);
    failed_ = failed_ || seen_.size() > 1;  // the value is read at several indices: the search may stop
    result = zero(type.dtype);
  } else if (roots_.count(value) == 0 && (place = build_.memory.find(value)) != nullptr &&
             roots_.count(place->base) == 0 && place->base != watched_) {
    result = load(*place, key.index);
  } else {
    result = compute(value, key.index);
  }
  memo_.emplace(std::move(key), result);
  return result;
}

Index Puller::simplified(ValueId value, Index index) {
  const TensorType& type = graph().type(value);
  for (size_t d = 0; d < index.size(); ++d)
    index[d] = pool().is_const(env().simplify(type.sizes[d]), 1) ? pool().constant(0) : env().simplify(index[d]);
  return index;
}

bool Puller::is_root_at(ValueId value, const Index& index) {
  const auto roots = roots_.find(value);
  if (roots == roots_.end()) return false;
  const Index here = simplified(value, index);
  return std::any_of(roots->second.begin(), roots->second.end(),
                     [&](const Root* root) { return root->index == index || simplified(value, root->index) == here; });
}

ScalarId Puller::element_where(ScalarId condition, ValueId value, const Index& index) {
  const ScalarId both = mask_.valid() ? scalars_.binary(loop::Op::BitAnd, mask_, condition) : condition;
  const ScalarId outer = std::exchange(mask_, both);
  const ScalarId result = element(value, index);
  mask_ = outer;
  return result;
}

ops::DataIndex Puller::data_index(ScalarId position, ValueId index, ValueId table, size_t dim, bool from_the_end) {
  const ExprId extent = graph().type(table).sizes[dim];
  const ScalarId zero = scalars_.constant_int(DType::I64, 0);
  if (failed_) return {pool().constant(0), std::nullopt};
  DataIndices& indices = build_.memory.data_indices();
  const IndexRange range = indices.range(index, extent);
  const ScalarId told = scalars_.cast(position, DType::I64);
  ScalarId inside = told;
  if (from_the_end && range != IndexRange::FromStart)
    inside = scalars_.select(scalars_.binary(loop::Op::Lt, told, zero),
                             scalars_.binary(loop::Op::Add, told, scalars_.size(extent)), told);
  if (range == IndexRange::FromStart || (range == IndexRange::FromEnd && from_the_end))
    return {scalars_.bind_index(inside), std::nullopt};
  const graph::NodeId node = graph().value(node_->results[0]).node;
  const auto checked = scalars_.checked_index(inside, extent, report(indices.site({node, dim})), 0, told, mask_);
  return {checked.index, checked.mask};
}

ScalarId Puller::compute(ValueId value, const Index& index) {
  const graph::Value& v = graph().value(value);
  const ops::OpDef* def = v.node.valid() ? native(graph(), v.node) : nullptr;
  const bool reduces = def != nullptr && def->op_class == ops::OpClass::Reduction,
             scans = def != nullptr && ops::is_scan(*def);
  if (def == nullptr || !may_compute(value, index, reduces || scans)) return fail(v.type.dtype);
  const graph::Node& node = graph().node(v.node);
  const graph::Node* outer = std::exchange(node_, &node);
  ScalarId result;
  if (def->op_class == ops::OpClass::View) {
    const Index mapped = view_index(*this, graph(), node, v.result, index);
    result = element(std::get<ValueId>(node.args[0]), mapped);
  } else if (def->op_class == ops::OpClass::Concat) {
    result = pick_part(node, index);
  } else if (reduces) {
    result = round(reduce(*def, node, v.result, index), value);
  } else if (scans) {
    result = round(scan(*def, node, index), value);
  } else {
    result = round(def->element(*this, ops::OpArgs(graph(), node.args), v.result, index), value);
  }
  node_ = outer;
  return result;
}

// A value of the group is computed once, at its own index. A fold cannot be computed at any other index.
bool Puller::may_compute(ValueId value, const Index& index, bool folds) {
  const auto roots = roots_.find(value);
  if (roots == roots_.end()) return !folds;
  return is_root_at(value, index);  // or at an index of the same element, if a dimension has at most a single element
}

// Reads an element of a concatenation without memory. The index must provably lie in a single part.
ScalarId Puller::pick_part(const graph::Node& node, const Index& index) {
  const DType dtype = graph().type(node.results[0]).dtype;
  for (const ConcatPart& part : concat_parts(graph(), node)) {
    const ExprId inside = env().simplify(pool().sub(index[part.dim], part.start));
    const ExprId size = graph().type(part.value).sizes[part.dim];
    if (!env().known_true(pool().ge(inside, pool().constant(0))) || !env().known_true(pool().lt(inside, size)))
      continue;
    Index in_part = index;
    in_part[part.dim] = inside;
    return scalars_.cast(element(part.value, in_part), compute_dtype(dtype));
  }
  return fail(dtype);
}

ScalarId Puller::reduce(const ops::OpDef& def, const graph::Node& node, size_t result, const Index& index) {
  const ops::OpArgs args(graph(), node.args);
  const ops::Reduction reduction = def.reduction(graph(), args, result);
  const std::vector<ExprId>& sizes = args.tensor(0).sizes;
  std::vector<loop::Dim> inner;
  for (const loop::Dim& dim : group_.dims)
    if (dim.kind == loop::Dim::Kind::Inner) inner.push_back(dim);
  const std::vector<size_t> order = folded_in_order(graph(), args.tensor(0), reduction);
  std::vector<ExprId> folded;
  for (const size_t d : order) folded.push_back(sizes[d]);
  const std::optional<Index> inside = coordinates(env(), inner, folded);
  const DType dtype = graph().type(node.results[result]).dtype;
  if (!inside) return fail(dtype);
  Index operand(sizes.size());
  for (size_t i = 0; i < order.size(); ++i) operand[order[i]] = (*inside)[i];
  for (size_t d = 0, next_index = 0; d < sizes.size(); ++d) {
    const bool folds = operand[d].valid();
    if (!folds) operand[d] = index[next_index];
    if (!folds || reduction.keepdim) ++next_index;
  }
  ++reductions_;
  const ScalarId value = scalars_.cast(def.element(*this, args, result, operand), reduction.accumulate);
  return scalars_.cast(scalars_.reduce(reduction.combine, value), compute_dtype(dtype));
}

// The inner dimension is the dimension of the scan, in order.
ScalarId Puller::scan(const ops::OpDef& def, const graph::Node& node, const Index& index) {
  const ops::OpArgs args(graph(), node.args);
  const ops::Reduction fold = def.reduction(graph(), args, 0);
  const auto is_inner = [](const loop::Dim& dim) { return dim.kind == loop::Dim::Kind::Inner; };
  const auto inner = std::find_if(group_.dims.begin(), group_.dims.end(), is_inner);
  const DType dtype = graph().type(node.results[0]).dtype;
  const bool single = std::count_if(group_.dims.begin(), group_.dims.end(), is_inner) == 1;
  const auto dim = static_cast<size_t>(fold.dims[0]);
  const bool in_order = single && (index.empty() || pool().is_const(env().simplify(inner->extent), 1) ||
                                   index[dim] == pool().var(inner->var));
  if (!in_order) return fail(dtype);
  ++reductions_;
  const ScalarId value = scalars_.cast(def.element(*this, args, 0, index), fold.accumulate);
  return scalars_.cast(scalars_.scan(fold.combine, value), compute_dtype(dtype));
}

ScalarId Puller::round(ScalarId scalar, ValueId value) {
  const DType dtype = graph().type(value).dtype;
  if (compute_dtype(dtype) == dtype) return scalar;
  return build_.options.eager_rounding || build_.rounded.count(value) != 0 ? scalars_.cast(scalar, dtype) : scalar;
}

loop::BufferId Puller::buffer(ValueId base) {
  const auto it = std::find(buffers_.begin(), buffers_.end(), base);
  if (it != buffers_.end()) return {static_cast<uint32_t>(it - buffers_.begin())};
  const graph::Value& v = graph().value(base);
  const std::string name = v.name.empty() ? "%" + std::to_string(base.index) : v.name;
  const bool elsewhere = v.type.device != device_of(graph(), group_);
  kernel_->buffers.push_back({.dtype = v.type.dtype, .name = name, .by_value = elsewhere});
  buffers_.push_back(base);
  return {static_cast<uint32_t>(buffers_.size() - 1)};
}

loop::BufferId Puller::report(uint32_t site) {
  for (const BuiltKernel::Report& known : reports_)
    if (known.site == site) return {known.buffer};
  const auto id = static_cast<uint32_t>(buffers_.size());
  kernel_->buffers.push_back({.dtype = DType::I64, .written = true, .name = "report"});
  buffers_.push_back({});
  reports_.push_back({id, site});
  return {id};
}

ScalarId Puller::load(const Place& place, const Index& index) {
  // Indices never depend on floats, so a search for an index may skip their loads.
  const DType stored = graph().type(place.base).dtype;
  if (watched_.valid() && is_float(stored)) return zero(stored);
  const loop::BufferId id = buffer(place.base);
  if (!kernel_->buffers[id.index].read) reads_.push_back(place.base);
  kernel_->buffers[id.index].read = true;
  const std::optional<ScalarId> mask = mask_.valid() ? std::optional(mask_) : std::nullopt;
  return scalars_.load(id, address(env(), place.layout, index), mask);
}

bool Puller::run() {
  for (const Root& root : group_.roots) {
    const ScalarId value = element(root.value, root.index);
    if (failed_ || over_limit()) return false;
    if (!root.stored || watched_.valid()) continue;
    const loop::BufferId into = buffer(root.into);
    kernel_->buffers[into.index].written = true;
    const DType dtype = compute_dtype(graph().type(root.into).dtype);  // may be wider than the value's dtype
    kernel_->stores.push_back({into, address(env(), root.layout, root.index), scalars_.cast(value, dtype)});
  }
  return !failed_;
}

}  // namespace

std::optional<BuiltKernel> build_kernel(const Build& build, const Group& group, const BuildLimits* limits) {
  Puller puller(build, group, limits);
  if (!puller.run()) return std::nullopt;
  return puller.take();
}

std::optional<Index> asked_index(const Build& build, const Group& group, ValueId value) {
  Puller puller(build, group, nullptr);
  puller.watch(value);
  puller.run();
  if (puller.seen().size() != 1) return std::nullopt;
  return puller.seen().front();
}

}  // namespace cresset::fuse
