#include "bridge/extern_kernels/cpu/recurrent_cells.h"

#include <algorithm>
#include <bit>

#include "bridge/device/cpu/multiversion.h"
#include "bridge/device/cpu/thread_pool.h"

namespace cresset::bridge {
namespace {

// e^x, for loops which the compiler vectorizes: x = k ln 2 + r, and e^r by its series. Arguments beyond the range of
// f32 are clamped; NaN stays NaN.
[[gnu::always_inline]] inline float exponential(float x) {
  constexpr float kLog2E = 1.44269504F, kRound = 12582912.0F;             // 1.5 * 2^23
  constexpr float kLn2Upper = 0.693359375F, kLn2Lower = -2.12194440e-4F;  // products of the upper part are exact
  x = std::min(std::max(x, -87.0F), 88.0F);
  const float shifted = x * kLog2E + kRound, k = shifted - kRound;
  const float r = (x - k * kLn2Upper) - k * kLn2Lower;
  float sum = 1.0F / 5040;
  for (const float factor : {1.0F / 720, 1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1.0F, 1.0F}) sum = sum * r + factor;
  return sum * std::bit_cast<float>((std::bit_cast<int32_t>(shifted) + 127) << 23);
}

[[gnu::always_inline]] inline float sigmoid(float x) { return 1 / (1 + exponential(-x)); }

// tanh. Near 0 it uses its own series, which loses no digits.
[[gnu::always_inline]] inline float hyperbolic(float x) {
  const float square = x * x;
  float sum = -929569.0F / 638512875;
  for (const float factor :
       {21844.0F / 6081075, -1382.0F / 155925, 62.0F / 2835, -17.0F / 315, 2.0F / 15, -1.0F / 3, 1.0F})
    sum = sum * square + factor;
  const float far = 1 - 2 / (1 + exponential(2 * x));
  return square < 0.25F ? sum * x : far;
}

CRESSET_MULTIVERSION
void lstm_rows(const CellForward& s, int64_t begin, int64_t end) {
  const int64_t n = s.features;
  for (int64_t row = begin; row < end; ++row) {
    const float* __restrict a = s.given[row], * __restrict b = s.from_state[row], * __restrict bias = s.bias, * __restrict before = s.cell_before[row];
    float* __restrict kept = s.kept[row], * __restrict out = s.out[row];
    for (int64_t j = 0; j < n; ++j) {
      const float input = sigmoid(a[j] + b[j] + bias[j]), forget = sigmoid(a[n + j] + b[n + j] + bias[n + j]),
                  fresh = hyperbolic(a[2 * n + j] + b[2 * n + j] + bias[2 * n + j]),
                  output = sigmoid(a[3 * n + j] + b[3 * n + j] + bias[3 * n + j]);
      const float cell = forget * before[j] + input * fresh;
      kept[j] = input, kept[n + j] = forget, kept[2 * n + j] = fresh, kept[3 * n + j] = output, kept[4 * n + j] = cell;
      out[j] = output * hyperbolic(cell);
    }
  }
}

CRESSET_MULTIVERSION
void gru_rows(const CellForward& s, int64_t begin, int64_t end) {
  const int64_t n = s.features;
  for (int64_t row = begin; row < end; ++row) {
    const float* __restrict a = s.given[row], * __restrict b = s.from_state[row], * __restrict bias = s.bias, * __restrict before = s.before[row];
    float* __restrict kept = s.kept[row], * __restrict out = s.out[row];
    for (int64_t j = 0; j < n; ++j) {
      const float reset = sigmoid(a[j] + b[j] + bias[j]), update = sigmoid(a[n + j] + b[n + j] + bias[n + j]),
                  hidden = b[2 * n + j] + bias[2 * n + j], fresh = hyperbolic(a[2 * n + j] + reset * hidden);
      kept[j] = reset, kept[n + j] = update, kept[2 * n + j] = fresh, kept[3 * n + j] = hidden;
      out[j] = (before[j] - fresh) * update + fresh;
    }
  }
}

CRESSET_MULTIVERSION
void tanh_rows(const CellForward& s, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* __restrict a = s.given[row], * __restrict b = s.from_state[row], * __restrict bias = s.bias;
    float* __restrict out = s.out[row];
    for (int64_t j = 0; j < s.features; ++j) out[j] = hyperbolic(a[j] + b[j] + bias[j]);
  }
}

CRESSET_MULTIVERSION
void relu_rows(const CellForward& s, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* __restrict a = s.given[row], * __restrict b = s.from_state[row], * __restrict bias = s.bias;
    float* __restrict out = s.out[row];
    for (int64_t j = 0; j < s.features; ++j) {
      const float sum = a[j] + b[j] + bias[j];
      out[j] = sum < 0 ? 0 : sum;  // NaN stays NaN
    }
  }
}

[[gnu::always_inline]] inline float of_sigmoid(float gradient, float y) { return gradient * (1 - y) * y; }
[[gnu::always_inline]] inline float of_tanh(float gradient, float y) { return gradient * (1 - y * y); }

CRESSET_MULTIVERSION
void lstm_rows_backward(const CellBackward& s, int64_t begin, int64_t end) {
  const int64_t n = s.features;
  for (int64_t row = begin; row < end; ++row) {
    const float* __restrict given = s.gradient[row], * __restrict later = s.later[row], * __restrict kept = s.kept[row], * __restrict before = s.cell_before[row];
    float* __restrict of_cell = s.cell[row], * __restrict gates = s.gates[row];
    for (int64_t j = 0; j < n; ++j) {
      const float gradient = given[j] + later[j];
      const float input = kept[j], forget = kept[n + j], fresh = kept[2 * n + j], output = kept[3 * n + j],
                  shown = hyperbolic(kept[4 * n + j]);
      const float here = of_cell[j] + of_tanh(gradient * output, shown);
      gates[j] = of_sigmoid(here * fresh, input);
      gates[n + j] = of_sigmoid(here * before[j], forget);
      gates[2 * n + j] = of_tanh(here * input, fresh);
      gates[3 * n + j] = of_sigmoid(gradient * shown, output);
      of_cell[j] = here * forget;
    }
  }
}

CRESSET_MULTIVERSION
void gru_rows_backward(const CellBackward& s, int64_t begin, int64_t end) {
  const int64_t n = s.features;
  for (int64_t row = begin; row < end; ++row) {
    const float* __restrict given = s.gradient[row], * __restrict later = s.later[row], * __restrict kept = s.kept[row], * __restrict before = s.before[row];
    float* __restrict gates = s.gates[row], * __restrict hidden = s.hidden[row], * __restrict otherwise = s.otherwise[row];
    for (int64_t j = 0; j < n; ++j) {
      const float gradient = given[j] + later[j] + otherwise[j];
      const float reset = kept[j], update = kept[n + j], fresh = kept[2 * n + j];
      const float of_fresh = of_tanh(gradient * (1 - update), fresh);
      const float of_reset = of_sigmoid(of_fresh * kept[3 * n + j], reset);
      const float of_update = of_sigmoid(gradient * (before[j] - fresh), update);
      gates[j] = of_reset, gates[n + j] = of_update, gates[2 * n + j] = of_fresh;
      hidden[j] = of_reset, hidden[n + j] = of_update, hidden[2 * n + j] = of_fresh * reset;
      otherwise[j] = gradient * update;
    }
  }
}

CRESSET_MULTIVERSION
void tanh_rows_backward(const CellBackward& s, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* __restrict given = s.gradient[row], * __restrict later = s.later[row], * __restrict out = s.out[row];
    float* __restrict gates = s.gates[row];
    for (int64_t j = 0; j < s.features; ++j) gates[j] = of_tanh(given[j] + later[j], out[j]);
  }
}

CRESSET_MULTIVERSION
void relu_rows_backward(const CellBackward& s, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* __restrict given = s.gradient[row], * __restrict later = s.later[row], * __restrict out = s.out[row];
    float* __restrict gates = s.gates[row];
    for (int64_t j = 0; j < s.features; ++j) gates[j] = out[j] <= 0 ? 0 : given[j] + later[j];
  }
}

// Uses threads where there is enough work for several.
template <class Step>
void for_rows(const Step& step, void (*run)(const Step&, int64_t, int64_t)) {
  constexpr int64_t kElements = 4096;
  const int64_t grain = std::max<int64_t>(1, kElements / std::max<int64_t>(1, step.features));
  if (step.rows <= grain) return run(step, 0, step.rows);
  run_on_ranges(step.rows, grain, [&](int64_t begin, int64_t end) { run(step, begin, end); });
}

}  // namespace

void lstm_cells(const CellForward& step) { for_rows(step, lstm_rows); }
void gru_cells(const CellForward& step) { for_rows(step, gru_rows); }
void tanh_cells(const CellForward& step) { for_rows(step, tanh_rows); }
void relu_cells(const CellForward& step) { for_rows(step, relu_rows); }
void lstm_cells_backward(const CellBackward& step) { for_rows(step, lstm_rows_backward); }
void gru_cells_backward(const CellBackward& step) { for_rows(step, gru_rows_backward); }
void tanh_cells_backward(const CellBackward& step) { for_rows(step, tanh_rows_backward); }
void relu_cells_backward(const CellBackward& step) { for_rows(step, relu_rows_backward); }

}  // namespace cresset::bridge
