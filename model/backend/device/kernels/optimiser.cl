// Optimisers (model/optimiser.cpp). One item updates one weight. Quotients and roots of floats are
// made in double precision: rounded to float they are those of float.

FUNCTION float quotient(float a, float b) { return (float)((double)a / (double)b); }
FUNCTION float root(float x) { return (float)sqrt((double)x); }

// `first` and `second` are the optimiser's arrays, as far as it has them.
KERNEL void update_weights(OPERAND(const float, gradients), OPERAND(float, weights),
                           OPERAND(float, first), OPERAND(float, second), const long size,
                           const OptimiserSizes optimiser) {
  const int i = item(0);
  if (i >= size) return;
  const float g = AT(gradients, 0)[i], rate = optimiser.rate;
  float change;
  if (optimiser.kind == OPTIMISER_SGD) {
    change = rate * g;
    if (optimiser.has_momentum) {
      change = optimiser.momentum * AT(first, 0)[i] + change;
      AT(first, 0)[i] = change;
    }
  } else if (optimiser.kind == OPTIMISER_RMSPROP) {
    const float square = optimiser.rho * AT(first, 0)[i] + optimiser.rest_of_rho * (g * g);
    AT(first, 0)[i] = square;
    change = quotient(rate * g, root(square) + optimiser.epsilon);
    if (optimiser.has_momentum) {
      change = optimiser.momentum * AT(second, 0)[i] + change;
      AT(second, 0)[i] = change;
    }
  } else if (optimiser.kind == OPTIMISER_ADAM) {
    const float mean = optimiser.beta_1 * AT(first, 0)[i] + optimiser.rest_of_beta_1 * g;
    const float square =
        optimiser.beta_2 * AT(second, 0)[i] + optimiser.rest_of_beta_2 * (g * g);
    AT(first, 0)[i] = mean;
    AT(second, 0)[i] = square;
    change = quotient(rate * mean, root(square) + optimiser.epsilon);
  } else {
    const float square = optimiser.rho * AT(first, 0)[i] + optimiser.rest_of_rho * (g * g);
    const float update = AT(second, 0)[i];
    const float step =
        quotient(g * root(update + optimiser.epsilon), root(square + optimiser.epsilon));
    AT(first, 0)[i] = square;
    AT(second, 0)[i] = optimiser.rho * update + optimiser.rest_of_rho * (step * step);
    change = rate * step;
  }
  AT(weights, 0)[i] -= change;
}
