#include "bridge/executor/result_views.h"

#include <ATen/TensorUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "bridge/aten/autograd_history.h"
#include "bridge/aten/dtypes.h"
#include "bridge/aten/empty_strides.h"
#include "bridge/aten/memory_view.h"
#include "bridge/aten/node_ptr.h"

namespace cresset::bridge {

ResultViews::ResultViews(std::vector<OutputSpec> specs, const sym::ExprPool& pool,
                         const std::unordered_map<sym::VarId, uint32_t>& slots) {
  std::vector<sym::ExprId> exprs;
  for (OutputSpec& spec : specs) {
    const c10::ScalarType dtype = to_torch(spec.dtype);
    View view{std::move(spec), static_cast<uint32_t>(exprs.size()), dtype};
    view.expands = std::any_of(view.spec.strides.begin(), view.spec.strides.end(),
                               [&](sym::ExprId stride) { return pool.is_const(stride, 0); });
    if (view.spec.is_view) {
      for (const Extent& extent : view.spec.extents()) {
        exprs.insert(exprs.end(), extent.sizes.begin(), extent.sizes.end());
        exprs.insert(exprs.end(), extent.strides.begin(), extent.strides.end());
        exprs.push_back(extent.offset);
      }
    }
    views_.push_back(std::move(view));
  }
  geometry_ = sym::SizeProgram::compile(pool, exprs, slots);
  std::vector<bool> listed(views_.size());
  for (uint32_t i = 0; i < views_.size(); ++i) {
    std::vector<uint32_t> chain;
    for (uint32_t k = i; k != OutputSpec::kOfBase && !listed[k]; k = views_[k].spec.viewed) {
      listed[k] = true;
      chain.push_back(k);
    }
    order_.insert(order_.end(), chain.rbegin(), chain.rend());
  }
}

at::Tensor ResultViews::viewed(const View& v, const at::Tensor& base, c10::ArrayRef<at::Tensor> made) const {
  const bool is_callers = v.spec.kind != OutputSpec::Kind::GraphOutput;
  if (v.spec.viewed >= made.size() || (is_callers && v.spec.detached) || v.spec.plain) return {};
  const at::Tensor& of = made[v.spec.viewed];
  if (!of.defined() || !is_recorded_view(of) || !of.requires_grad() || !base.requires_grad()) return {};
  if (of.scalar_type() == v.dtype) return of;
  return shows_parts_of(of.scalar_type(), v.dtype) ? at::view_as_real(of.is_conj() ? of.conj() : of) : at::Tensor();
}

namespace {

// Autograd's node of a view which must not be written: messages name the node and the number of the view.
class NamedView final : public torch::autograd::Node {
 public:
  NamedView(torch::autograd::Edge next, std::string name, uint32_t number)
      : Node(torch::autograd::edge_list{std::move(next)}), name_(std::move(name)), number_(number) {}
  std::string name() const override { return name_; }

 protected:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    return {std::move(gradients[number_])};
  }

 private:
  std::string name_;
  uint32_t number_;
};

void mark_node(const at::Tensor& view, const OutputSpec& spec) {
  auto* meta = torch::autograd::impl::get_view_autograd_meta(view);
  if (spec.one_of_several) meta->set_creation_meta(torch::autograd::CreationMeta::MULTI_OUTPUT_NODE);
  if (spec.node.empty() || !meta->grad_fn_) return;
  NodePtr node = make_node<NamedView>(torch::autograd::Edge(meta->grad_fn_, meta->output_nr_), spec.node, spec.number);
  for (uint32_t i = 0; i < spec.number; ++i) node->add_input_metadata(torch::autograd::Node::undefined_input());
  node->add_input_metadata(view);
  meta->grad_fn_ = std::move(node);
  meta->output_nr_ = spec.number;
}

// Whether the view regroups the dimensions of a parent whose elements share memory. The derivative of as_strided would
// give each of these elements the mean of their gradients.
bool is_regrouped(const at::Tensor& parent, const at::Tensor& base, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                  int64_t offset) {
  bool shares = false;
  for (int64_t d = 0; d < parent.dim(); ++d) shares = shares || (parent.stride(d) == 0 && parent.size(d) > 1);
  if (!shares || c10::multiply_integers(sizes) != parent.numel() || parent.numel() == 0) return false;
  const auto from = static_cast<int64_t>(base.element_size()), to = static_cast<int64_t>(parent.element_size());
  if (base.storage_offset() * from / to + offset != parent.storage_offset()) return false;
  const auto regrouped = at::detail::computeStride(parent.sizes(), parent.strides(), sizes);
  return regrouped && c10::IntArrayRef(*regrouped) == strides;
}

// A view of the base's memory by way of `parent`, which may be the base itself. The offset counts from the base.
at::Tensor part_of(const at::Tensor& parent, const at::Tensor& base, c10::ScalarType dtype, c10::IntArrayRef sizes,
                   c10::IntArrayRef strides, int64_t offset) {
  if (parent.is_same(base)) return view_of_memory(base, dtype, sizes, strides, offset);
  if (is_regrouped(parent, base, sizes, strides, offset)) return parent.view(sizes);
  const auto from = static_cast<int64_t>(base.element_size()), to = static_cast<int64_t>(parent.element_size());
  return at::as_strided(parent, sizes, strides, base.storage_offset() * from / to + offset);
}

at::Tensor with_bits(at::Tensor view, const OutputSpec& spec) {
  if (view.is_conj() != spec.conjugated) view = view._conj();
  return view.is_neg() != spec.negated ? view._neg_view() : view;
}

}  // namespace

at::Tensor ResultViews::view(const View& v, const at::Tensor& base, const int64_t* geometry, c10::IntArrayRef exact,
                             c10::ArrayRef<at::Tensor> made) const {
  const int64_t* numbers = geometry + v.first;
  const at::Tensor of = viewed(v, base, made);
  at::Tensor start = base;
  if (v.spec.of_unrecorded && base.requires_grad()) {
    const at::NoGradGuard unrecorded;
    start = at::alias(base);
  }
  if (v.spec.inference && !base.is_inference() && c10::InferenceMode::is_enabled())
    start = base.view(base.scalar_type());
  at::Tensor parent = of.defined() ? of : start;
  size_t known = of.defined() ? views_[v.spec.viewed].spec.within.size() : 0;
  for (const Extent& extent : v.spec.within) {
    const size_t rank = extent.sizes.size();
    if (known == 0)
      parent = part_of(parent, start, v.dtype, {numbers, rank}, {numbers + rank, rank}, numbers[2 * rank]);
    else
      --known;
    numbers += 2 * rank + 1;
  }
  const size_t rank = v.spec.sizes.size();
  const c10::IntArrayRef sizes(numbers, rank);
  std::vector<int64_t> strides(numbers + rank, numbers + 2 * rank);
  if (base.numel() == 0 && !v.expands) count_empty_as_one(sizes, strides);
  if (!exact.empty() && same_addresses(sizes, strides, exact)) strides = exact.vec();
  const int64_t offset = numbers[2 * rank];
  const at::Tensor strided = part_of(parent, start, v.dtype, sizes, strides, offset);
  at::Tensor out = with_bits(strided, v.spec);
  if ((v.spec.one_of_several || !v.spec.node.empty()) && is_recorded_view(out)) mark_node(out, v.spec);
  return out;
}

at::Tensor ResultViews::recorded(size_t i, const at::Tensor& base, const int64_t* symbols,
                                 const std::vector<at::Tensor>& made) const {
  const at::Tensor whole = views_[i].spec.plain ? base.detach() : base;
  if (!views_[i].spec.is_view) return whole;
  const AboveAutograd recording;
  const at::AutoGradMode mode(!views_[i].spec.unrecorded);
  c10::SmallVector<int64_t, 16> geometry(geometry_.output_count());
  geometry_.run(symbols, geometry.data());
  return view(views_[i], whole, geometry.data(), made[i].strides(), made);
}

at::Tensor ResultViews::of_written(size_t i, const at::Tensor& base, const int64_t* symbols,
                                   const std::vector<at::Tensor>& made) const {
  const AboveAutograd recording;
  c10::SmallVector<int64_t, 16> geometry(geometry_.output_count());
  geometry_.run(symbols, geometry.data());
  const OutputSpec& spec = views_[i].spec;
  if (spec.detached) return view(views_[i], base.detach(), geometry.data(), made[i].strides());
  const at::AutoGradMode mode(!spec.unrecorded);
  return view(views_[i], base, geometry.data(), made[i].strides(), made);
}

// A tensor with another version counter is no view of its memory's base for autograd: later views of it would take the
// base's counter. The result of detach() is a view for forward-mode derivatives alone.
static void view_apart(const at::Tensor& tensor, const at::Tensor& of) {
  using torch::autograd::DifferentiableViewMeta;
  const DifferentiableViewMeta* const meta = torch::autograd::impl::get_view_autograd_meta(tensor);
  if (meta == nullptr || !meta->has_bw_view() || tensor.requires_grad()) return;
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (!of.defined() || of.is_inference() || of.is_view()) return impl->set_autograd_meta(nullptr);
  impl->set_autograd_meta(std::make_unique<DifferentiableViewMeta>(
      impl, torch::autograd::ViewInfo(of, nullptr, nullptr), std::nullopt, /*shared_view_info=*/true));
}

void ResultViews::set_versions(const std::vector<at::Tensor>& results) const {
  for (size_t i = 0; i < views_.size(); ++i) {
    const uint32_t leader = views_[i].spec.versions;
    const bool is_callers_own = views_[i].spec.kind != OutputSpec::Kind::GraphOutput && !views_[i].spec.is_view;
    if (leader == OutputSpec::kOfBase || is_callers_own || !results[i].defined() || results[i].is_inference()) continue;
    c10::TensorImpl* impl = results[i].unsafeGetTensorImpl();
    // Beside y, y.detach() shares the counter of a tensor with a history, and has none itself.
    const bool is_apart = leader == i || views_[i].spec.plain != views_[leader].spec.plain ||
                          views_[i].spec.detached != views_[leader].spec.detached;
    view_apart(results[i], is_apart ? at::Tensor() : results[leader]);
    impl->set_version_counter(leader == i ? c10::VariableVersion(0)
                                          : results[leader].unsafeGetTensorImpl()->version_counter());
  }
}

// A copy of the program which eager mode makes as a view of a caller's tensor (possible_views.cpp). The segment may end
// inside of an operator, below autograd: autograd knows all other views already, and must be told of this one.
static bool is_copied_view(const OutputSpec& spec, const at::Tensor& base) {
  if (spec.notes == nullptr || !spec.value.valid() || c10::InferenceMode::is_enabled()) return false;
  return spec.notes->choices.contains(spec.value) ||
         (base.requires_grad() && !base.is_leaf() && spec.notes->parts_of_copies.contains(spec.value));
}

// Whether no other result lies in the same memory.
bool ResultViews::is_alone(size_t i) const {
  const auto shares = [&](const View& v) {
    return v.spec.kind == OutputSpec::Kind::GraphOutput && v.spec.position == views_[i].spec.position;
  };
  return std::count_if(views_.begin(), views_.end(), shares) == 1;
}

std::vector<at::Tensor> ResultViews::make(c10::ArrayRef<at::Tensor> inputs, const std::vector<at::Tensor>& constants,
                                          const std::vector<at::Tensor>& results, const int64_t* symbols,
                                          bool below_autograd, const VisibleStrides::Answer* strides) const {
  c10::SmallVector<int64_t, 16> geometry(geometry_.output_count());
  if (!geometry.empty()) geometry_.run(symbols, geometry.data());
  std::vector<at::Tensor> out(views_.size());
  for (const uint32_t i : order_) {
    const View& v = views_[i];
    const c10::IntArrayRef exact = strides == nullptr ? c10::IntArrayRef() : c10::IntArrayRef((*strides)[i]);
    const bool fresh = v.spec.kind == OutputSpec::Kind::GraphOutput;
    at::Tensor base = fresh && v.spec.plain                    ? results[v.spec.position].detach()
                      : fresh                                  ? results[v.spec.position]
                      : v.spec.kind == OutputSpec::Kind::Input ? inputs[v.spec.position]
                                                               : constants[v.spec.position];
    if (fresh && !v.spec.is_view && base.defined() && !exact.empty() &&
        (is_alone(i) || same_addresses(base.sizes(), base.strides(), exact)))
      base = with_strides(std::move(base), exact);
    if (!v.spec.is_view || !base.defined()) {
      out[i] = base;
    } else if (fresh && below_autograd) {
      const at::AutoDispatchBelowADInplaceOrView below;
      out[i] = view(v, base, geometry.data(), exact);
    } else if (!fresh && v.spec.detached && base.requires_grad()) {
      out[i] = view(v, base.detach(), geometry.data(), exact);
    } else if (!fresh) {  // the mode at the start of the segment
      std::optional<AboveAutograd> recording;
      if (is_copied_view(v.spec, base)) recording.emplace();
      const at::AutoGradMode mode(!v.spec.unrecorded);
      out[i] = view(v, base, geometry.data(), exact, out);
    } else {
      out[i] = view(v, base, geometry.data(), exact, out);
    }
    if (v.spec.leaf) out[i].set_requires_grad(true);
  }
  return out;
}

}  // namespace cresset::bridge
