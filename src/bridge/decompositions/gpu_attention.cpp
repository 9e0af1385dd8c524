#include "bridge/decompositions/gpu_attention.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <set>

#include "bridge/decompositions/optional_tensor.h"
#include "ops/attention.h"

namespace cresset::bridge {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Optional = std::optional<at::Tensor>;
using Scale = std::optional<double>;
using ops::AttentionKernel;

// Of the kernels of 16-bit dtypes.
constexpr int64_t kMultipleOfFeatures = 8, kMostFeatures = 256;

bool is_narrow(const at::Tensor& t) { return t.scalar_type() == at::kHalf || t.scalar_type() == at::kBFloat16; }

// ---- operators

bool has_kernel(const char* name) {
  const auto op = c10::Dispatcher::singleton().findSchema({name, ""});
  return op && op->hasKernelForDispatchKey(c10::DispatchKey::CUDA);
}
bool has_flash() {
  static const bool has = has_kernel("aten::_scaled_dot_product_flash_attention");
  return has && at::globalContext().userEnabledFlashSDP();
}
bool has_efficient() {
  static const bool has = has_kernel("aten::_scaled_dot_product_efficient_attention");
  return has && at::globalContext().userEnabledMemEfficientSDP();
}

// cuDNN plans its kernel anew for each vector of sizes, which takes 80 ms (H200, cuDNN 9). The first sizes of a process
// are worth a plan; a cache that grows with each call is not.
class PlannedSizes {
 public:
  bool admit(const at::Tensor& query, const at::Tensor& key, bool causal) {
    constexpr size_t kMostPlans = 32;
    const std::array<int64_t, 7> sizes{query.size(0), query.size(1), query.size(2), query.size(3),
                                       key.size(1),   key.size(2),   causal};
    const std::lock_guard lock(mutex_);
    if (known_.contains(sizes)) return true;
    return known_.size() < kMostPlans && known_.insert(sizes).second;
  }

 private:
  std::mutex mutex_;
  std::set<std::array<int64_t, 7>> known_;
};

// nullopt: torch chooses. A single query without a mask reads each key once, for which flash attention splits the keys.
std::optional<AttentionKernel> kernel_without_plan(const at::Tensor& query, const at::Tensor& key,
                                                   const at::Tensor& value, const Optional& mask, bool causal,
                                                   bool grouped) {
  static auto& planned = *new PlannedSizes;
  const int64_t features = query.size(3);
  if (!is_narrow(query) || features != value.size(3) || features % kMultipleOfFeatures != 0 ||
      features > kMostFeatures || query.numel() == 0 || key.numel() == 0)
    return std::nullopt;
  if (!is_given(mask)) {
    const bool flash = has_flash() && (query.size(2) == 1 || !planned.admit(query, key, causal));
    return flash ? std::optional(AttentionKernel::Flash) : std::nullopt;
  }
  const bool fits = has_efficient() && !grouped && mask->dim() == 4 && mask->scalar_type() == query.scalar_type();
  return fits && !planned.admit(query, key, causal) ? std::optional(AttentionKernel::Efficient) : std::nullopt;
}

// Whether a kernel takes fewer heads of keys than of queries; the plain products would repeat the keys.
bool takes_groups(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const Optional& mask,
                  bool causal, Scale scale) {
  const int64_t chosen = at::_fused_sdp_choice(query, key, value, mask, 0.0, causal, scale, /*enable_gqa=*/true);
  return static_cast<at::SDPBackend>(chosen) != at::SDPBackend::math;
}

at::Tensor repeated_for_queries(const at::Tensor& t, const at::Tensor& query) {
  const int64_t heads = t.size(1), times = heads == 0 ? 1 : query.size(1) / heads;
  return t.unsqueeze(2).expand({t.size(0), heads, times, t.size(2), t.size(3)}).flatten(1, 2);
}

at::Tensor fused_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const Optional& mask, bool causal, Scale scale, bool grouped) {
  const at::NoGradGuard plain;
  if (grouped && key.size(1) != query.size(1) && !takes_groups(query, key, value, mask, causal, scale))
    return fused_attention(query, repeated_for_queries(key, query), repeated_for_queries(value, query), mask, causal,
                           scale, false);
  const std::optional<AttentionKernel> kernel = kernel_without_plan(query, key, value, mask, causal, grouped);
  if (kernel == AttentionKernel::Flash)
    return std::get<0>(at::_scaled_dot_product_flash_attention(query, key, value, 0.0, causal, false, scale));
  if (kernel == AttentionKernel::Efficient)
    return std::get<0>(at::_scaled_dot_product_efficient_attention(query, key, value, mask, false, 0.0, causal, scale));
  return at::scaled_dot_product_attention(query, key, value, mask, 0.0, causal, scale, grouped);
}

// The kernels draw no numbers without dropout, and their derivatives look at none.
at::Tensor no_number(const at::Tensor& like, at::IntArrayRef sizes, at::ScalarType dtype) {
  return at::empty(sizes, like.options().dtype(dtype));
}

// torch's own choice for a pass with gradients. The statistics of cuDNN's kernel and of flash attention are the same
// numbers, so a backward pass may take another of these two kernels than its forward pass did.
bool takes_cudnn(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, bool causal, Scale scale) {
  static auto& planned = *new PlannedSizes;
  static const bool has = has_kernel("aten::_scaled_dot_product_cudnn_attention_backward");
  if (!has || query.numel() == 0 || key.numel() == 0) return false;
  const at::AutoGradMode with_gradients(true);  // cuDNN differentiates fewer sizes than it computes
  const at::Tensor asking = query.detach().set_requires_grad(true);
  const auto chosen = static_cast<at::SDPBackend>(
      at::_fused_sdp_choice(asking, key, value, std::nullopt, 0.0, causal, scale, /*enable_gqa=*/false));
  return chosen == at::SDPBackend::cudnn_attention && planned.admit(query, key, causal);
}

std::tuple<at::Tensor, at::Tensor> attention_forward(const at::Tensor& query, const at::Tensor& key,
                                                     const at::Tensor& value, const Optional& bias, bool causal,
                                                     Scale scale, int64_t kernel) {
  const at::NoGradGuard plain;
  if (static_cast<AttentionKernel>(kernel) == AttentionKernel::Flash) {
    if (takes_cudnn(query, key, value, causal, scale)) {
      auto made = at::_scaled_dot_product_cudnn_attention(query, key, value, {}, /*compute_log_sumexp=*/true, 0.0,
                                                          causal, false, scale);
      return {std::get<0>(made), std::get<1>(made).squeeze(-1)};
    }
    auto made = at::_scaled_dot_product_flash_attention(query, key, value, 0.0, causal, false, scale);
    return {std::get<0>(made), std::get<1>(made)};
  }
  auto made = at::_scaled_dot_product_efficient_attention(query, key, value, bias, true, 0.0, causal, scale);
  return {std::get<0>(made), std::get<1>(made)};
}

// The kernels read gradients row by row; that of a sum has its only element everywhere.
at::Tensor in_memory(const at::Tensor& gradient) {
  if (gradient.numel() == 0) return at::zeros(gradient.sizes(), gradient.options());
  const c10::IntArrayRef strides = gradient.strides();
  const bool repeats = std::find(strides.begin(), strides.end(), 0) != strides.end();
  return repeats || strides.back() != 1 ? gradient.contiguous() : gradient;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> attention_backward(const at::Tensor& given, const at::Tensor& query,
                                                                  const at::Tensor& key, const at::Tensor& value,
                                                                  const Optional& bias, const at::Tensor& out,
                                                                  const at::Tensor& logsumexp, bool causal, Scale scale,
                                                                  int64_t kernel) {
  const at::NoGradGuard plain;
  const at::Tensor gradient = in_memory(given);
  const bool flash = static_cast<AttentionKernel>(kernel) == AttentionKernel::Flash;
  if (flash && takes_cudnn(query, key, value, causal, scale)) {
    const at::Tensor number = no_number(query, {}, at::kLong);
    return at::_scaled_dot_product_cudnn_attention_backward(gradient, query, key, value, out, logsumexp.unsqueeze(-1),
                                                            number, number, {}, {}, {}, query.size(2), key.size(2), 0.0,
                                                            causal, scale);
  }
  if (flash)
    return at::_scaled_dot_product_flash_attention_backward(
        gradient, query, key, value, out, logsumexp, {}, {}, query.size(2), key.size(2), 0.0, causal,
        no_number(query, {2}, at::kUInt64), no_number(query, {}, at::kUInt64), scale);
  const at::Tensor number = no_number(query, {}, at::kLong);
  // The kernel takes this order of memory for granted.
  const at::Tensor in_order = out.transpose(1, 2).contiguous().transpose(1, 2);
  auto made = at::_scaled_dot_product_efficient_attention_backward(
      gradient, query, key, value, bias.value_or(at::Tensor()), in_order, logsumexp, number, number, 0.0,
      {true, true, true, false}, causal, scale);
  return {std::get<0>(made), std::get<1>(made), std::get<2>(made)};
}

template <class F>
auto operator_named(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<F>();
}

// ---- by plain operators

Optional added(const Optional& mask, const at::Tensor& query) {
  return is_given(mask) ? Optional(added_to_scores(*mask, query)) : mask;
}

at::Tensor by_products(const Attention& a) {
  return std::get<0>(at::_scaled_dot_product_attention_math(a.query, a.key, a.value, added(a.mask, a.query), a.dropout,
                                                            a.causal, std::nullopt, a.scale, a.grouped));
}

// ---- with gradients

// A gradient that is differentiated again comes from plain operators.
variable_list differentiable_gradients(const variable_list& saved, const at::Tensor& gradient, bool causal,
                                       Scale scale) {
  const at::Tensor out = by_products({saved[0], saved[1], saved[2], optional_of(saved[3]), 0.0, causal, scale, false});
  variable_list wanted, made(3);
  for (size_t i = 0; i < 3; ++i)
    if (saved[i].requires_grad()) wanted.push_back(saved[i]);
  const variable_list found = torch::autograd::grad({out}, wanted, {gradient}, true, true, true);
  for (size_t i = 0, k = 0; i < 3; ++i)
    if (saved[i].requires_grad()) made[i] = found[k++];
  return made;
}

struct Recorded : torch::autograd::Function<Recorded> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value, const Optional& bias, bool causal, Scale scale, int64_t kernel) {
    static const auto op = operator_named<decltype(attention_forward)>("cresset::attention_forward");
    auto [out, logsumexp] = op.call(query, key, value, bias, causal, scale, kernel);
    context->saved_data["causal"] = causal;
    context->saved_data["scale"] = scale;
    context->saved_data["kernel"] = kernel;
    context->save_for_backward({query, key, value, bias.value_or(at::Tensor()), out, logsumexp});
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const bool causal = context->saved_data["causal"].toBool();
    const Scale scale = context->saved_data["scale"].toOptional<double>();
    const int64_t kernel = context->saved_data["kernel"].toInt();
    const variable_list saved = context->get_saved_variables();
    if (at::GradMode::is_enabled()) {
      variable_list made = differentiable_gradients(saved, gradients[0], causal, scale);
      made.resize(7);
      return made;
    }
    static const auto op = operator_named<decltype(attention_backward)>("cresset::attention_backward");
    auto [query, key, value] = op.call(gradients[0], saved[0], saved[1], saved[2], optional_of(saved[3]), saved[4],
                                       saved[5], causal, scale, kernel);
    return {query, key, value, {}, {}, {}, {}};
  }
};

// ---- the choice

bool same_size(const c10::SymInt& a, const c10::SymInt& b) { return a.sym_eq(b).guard_bool(__FILE__, __LINE__); }
bool divides(int64_t divisor, const c10::SymInt& size) { return same_size(size % divisor, 0); }
bool holds(const c10::SymBool& condition) { return condition.guard_bool(__FILE__, __LINE__); }

bool are_alike(const Attention& a) {  // four dimensions, one batch, one number of heads
  for (const at::Tensor* t : {&a.query, &a.key, &a.value})
    if (t->dim() != 4 || t->scalar_type() != a.query.scalar_type()) return false;
  const bool same =
      same_size(a.query.sym_size(0), a.key.sym_size(0)) && same_size(a.query.sym_size(0), a.value.sym_size(0));
  return same && (a.grouped || same_size(a.query.sym_size(1), a.key.sym_size(1))) &&
         same_size(a.key.sym_size(1), a.value.sym_size(1)) && same_size(a.key.sym_size(2), a.value.sym_size(2));
}

std::optional<AttentionKernel> kernel_for(const Attention& a) {
  const bool deterministic = at::globalContext().deterministicAlgorithms();
  if (a.dropout != 0 || a.grouped || deterministic || !are_alike(a)) return std::nullopt;
  const bool narrow = is_narrow(a.query);
  const int64_t multiple = narrow ? kMultipleOfFeatures : 4;
  const c10::SymInt features = a.query.sym_size(3), of_values = a.value.sym_size(3);
  if ((!narrow && a.query.scalar_type() != at::kFloat) || !divides(multiple, features) || !divides(multiple, of_values))
    return std::nullopt;
  if (has_flash() && narrow && !is_given(a.mask) && same_size(features, of_values) &&
      holds(features.sym_le(kMostFeatures)))
    return AttentionKernel::Flash;
  const bool mask_is_plain = !is_given(a.mask) || (!a.mask->requires_grad() && a.mask->dim() <= 4);
  if (has_efficient() && mask_is_plain) return AttentionKernel::Efficient;
  return std::nullopt;
}

// The mask as numbers that are added to scores, of all batches and heads, in rows that begin at multiples of 16
// elements: the memory-efficient kernel reads no other mask. Batches, heads and queries with one row share its memory.
Optional aligned_mask(const Attention& a) {
  if (!is_given(a.mask)) return std::nullopt;
  constexpr int64_t kMultiple = 16;
  const c10::SymInt length = a.key.sym_size(2);
  at::Tensor mask = *a.mask;
  for (int64_t d = 0; d < mask.dim() - 1; ++d)
    if (same_size(mask.sym_stride(d), 0) && holds(mask.sym_size(d).sym_ge(1))) mask = mask.narrow_symint(d, 0, 1);
  mask = added(mask, a.query)->to(a.query.scalar_type());
  std::vector<c10::SymInt> row = mask.sym_sizes().vec();
  row.back() = length;
  const c10::SymInt missing = (c10::SymInt(kMultiple) - length % kMultiple) % kMultiple;
  const std::vector<c10::SymInt> padding{0, missing};
  // A mask that was made with heads in the last dimension keeps this order of memory when it is padded.
  return at::constant_pad_nd_symint(mask.expand_symint(row), padding)
      .contiguous()
      .narrow_symint(-1, 0, length)
      .expand_symint({a.query.sym_size(0), a.query.sym_size(1), a.query.sym_size(2), length});
}

// Fused kernels of 16-bit dtypes take features in multiples of 8. Zeros beside the features change no score, and add
// results that are dropped: kernels write them with the operands, where ATen would copy each operand.
std::optional<Attention> with_padded_features(const Attention& a) {
  if (!is_narrow(a.query) || a.dropout != 0 || !are_alike(a)) return std::nullopt;
  const c10::SymInt features = a.query.sym_size(3);
  if (divides(kMultipleOfFeatures, features) || !same_size(features, a.value.sym_size(3)) ||
      !holds(features.sym_le(kMostFeatures)))
    return std::nullopt;
  const std::vector<c10::SymInt> padding{0, kMultipleOfFeatures - features % kMultipleOfFeatures};
  Attention out = a;
  for (at::Tensor* t : {&out.query, &out.key, &out.value}) *t = at::constant_pad_nd_symint(*t, padding);
  if (!out.scale) out.scale = 1 / std::sqrt(static_cast<double>(features.guard_int(__FILE__, __LINE__)));
  return out;
}

at::Tensor dense_rows(const at::Tensor& t) { return same_size(t.sym_stride(-1), 1) ? t : t.contiguous(); }

bool wants_gradient(const Attention& a) {
  if (!at::GradMode::is_enabled()) return false;
  return a.query.requires_grad() || a.key.requires_grad() || a.value.requires_grad() ||
         (is_given(a.mask) && a.mask->requires_grad());
}

}  // namespace

at::Tensor added_to_scores(const at::Tensor& mask, const at::Tensor& query) {
  if (mask.scalar_type() != at::kBool) return mask;
  const at::TensorOptions options = at::TensorOptions().dtype(query.scalar_type()).device(query.device());
  return at::where(mask, at::scalar_tensor(0.0, options),
                   at::scalar_tensor(-std::numeric_limits<double>::infinity(), options));
}

std::optional<at::Tensor> gpu_attention(const Attention& a) {
  const bool contradictory = is_given(a.mask) && a.causal;
  if (contradictory || a.query.dim() < 2 || a.key.dim() < 2 || a.value.dim() < 2 ||
      a.query.scalar_type() != a.key.scalar_type() || a.query.scalar_type() != a.value.scalar_type())
    return std::nullopt;
  if (const std::optional<Attention> wide = with_padded_features(a)) {
    const std::optional<at::Tensor> out = gpu_attention(*wide);
    return out ? std::optional(out->narrow_symint(-1, 0, a.value.sym_size(3))) : std::nullopt;
  }
  if (!wants_gradient(a) && a.dropout == 0 && are_alike(a)) {
    static const auto op = operator_named<decltype(fused_attention)>("cresset::attention");
    const bool fits = is_given(a.mask) && a.mask->dim() >= 1 && a.mask->dim() <= 4 &&
                      (a.mask->scalar_type() == at::kBool || a.mask->scalar_type() == a.query.scalar_type());
    return op.call(a.query, a.key, a.value, fits ? aligned_mask(a) : a.mask, a.causal, a.scale, a.grouped);
  }
  const std::optional<AttentionKernel> kernel = kernel_for(a);
  if (!kernel) return by_products(a);
  return Recorded::apply(dense_rows(a.query), dense_rows(a.key), dense_rows(a.value), aligned_mask(a), a.causal,
                         a.scale, static_cast<int64_t>(*kernel));
}

void register_gpu_attention() {
  if (c10::Dispatcher::singleton().findSchema({"cresset::attention", ""})) return;
  static auto* const library =
      new torch::Library(torch::Library::FRAGMENT, "cresset", std::nullopt, __FILE__, __LINE__);
  const auto add = [](const char* name, const char* schema, auto function) {
    library->def(torch::schema(schema));
    library->impl(name, torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, function));
  };
  add("attention",
      "cresset::attention(Tensor query, Tensor key, Tensor value, Tensor? mask, bool causal, float? scale, bool "
      "grouped) -> Tensor",
      TORCH_FN(fused_attention));
  add("attention_forward",
      "cresset::attention_forward(Tensor query, Tensor key, Tensor value, Tensor? bias, bool causal, float? scale, int "
      "kernel) -> (Tensor, Tensor)",
      TORCH_FN(attention_forward));
  add("attention_backward",
      "cresset::attention_backward(Tensor gradient, Tensor query, Tensor key, Tensor value, Tensor? bias, Tensor out, "
      "Tensor logsumexp, bool causal, float? scale, int kernel) -> (Tensor, Tensor, Tensor)",
      TORCH_FN(attention_backward));
}

}  // namespace cresset::bridge
