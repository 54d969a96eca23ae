/*
 * Measures the sustainable memory bandwidth of four vector kernels.
 *
 * The kernels, the byte counts per iteration (16, 16, 24, 24) and the rule
 * "best of the trials after the first" are those that J. D. McCalpin published
 * for STREAM (Memory bandwidth and machine balance in current high performance
 * computers, IEEE TCCA Newsletter, 1995).  The code is written anew.
 *
 * Usage:  stream --threads N --elements N --trials N
 * Output: one JSON object a line; the last one is {"done": true}.
 */
#define _GNU_SOURCE
#include <float.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "strata.h"

/* The square root of 2, less 1: with it each trial restores the first array, so that no number of
 * trials overflows. */
static const double SCALAR = 0.41421356237309503;
static const double FIRST[3] = {1.0, 2.0, 0.0};

enum kernel { COPY, SCALE, ADD, TRIAD, KERNELS };
static const char *const NAME[KERNELS] = {"copy", "scale", "add", "triad"};
static const int BYTES[KERNELS] = {16, 16, 24, 24};

/* Runs one kernel over arrays of N elements.  verify_arrays() does the same with one element. */
static void run_kernel(enum kernel kernel, size_t n, double *restrict a,
                       double *restrict b, double *restrict c)
{
    switch (kernel) {
    case COPY:
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < n; i++)
            c[i] = a[i];
        break;
    case SCALE:
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < n; i++)
            b[i] = SCALAR * c[i];
        break;
    case ADD:
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < n; i++)
            c[i] = a[i] + b[i];
        break;
    case TRIAD:
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < n; i++)
            a[i] = b[i] + SCALAR * c[i];
        break;
    default:
        break;
    }
}

/* Returns the largest relative difference of an element of X from its expected value;
 * DBL_MAX if an element is not a number. */
static double find_worst_error(const double *x, size_t n, double expected)
{
    double worst = 0.0;
#pragma omp parallel for schedule(static) reduction(max : worst)
    for (size_t i = 0; i < n; i++) {
        double error = fabs(x[i] - expected) / fabs(expected);
        /* A NaN compares false with everything: make it the worst error. */
        if (!(error <= worst))
            worst = isnan(error) ? DBL_MAX : error;
    }
    return worst;
}

/* Compares the arrays after all trials with what the kernels make of one element of each, prints
 * the largest error for parse.py, and returns whether rounding explains it. */
static int verify_arrays(double *const array[3], size_t n, long trials)
{
    double expected[3] = {FIRST[0], FIRST[1], FIRST[2]};
    for (long trial = 0; trial < trials; trial++) {
        expected[2] = expected[0];
        expected[1] = SCALAR * expected[2];
        expected[2] = expected[0] + expected[1];
        expected[0] = expected[1] + SCALAR * expected[2];
    }
    double error = 0.0;
    for (int k = 0; k < 3; k++)
        error = fmax(error, find_worst_error(array[k], n, expected[k]));
    /* Each trial may round differently where multiplication and addition are one instruction. */
    double limit = 1e-15 * (double)(trials + 100);
    int passed = error <= limit;
    printf("{\"verified\": %s, \"error\": %.3g, \"limit\": %.3g}\n", format_bool(passed), error,
           limit);
    return passed;
}

/* Measures all kernels, verifies the arrays, and prints the log, whose keys parse.py reads.  The
 * status is 1 if the arrays are wrong, and then the log lacks its last line. */
int main(int argc, char **argv)
{
    long threads = get_integer(argc, argv, "--threads", 1, 4096);
    long elements = get_integer(argc, argv, "--elements", 1000, LONG_MAX / 24);
    long trials = get_integer(argc, argv, "--trials", 2, 100000);
    size_t n = (size_t)elements;
    double *array[3];

    omp_set_dynamic(0);
    omp_set_num_threads((int)threads);
    for (int k = 0; k < 3; k++)
        array[k] = allocate_huge(n * sizeof(double));

    int team = 0;
#pragma omp parallel
    {
#pragma omp single
        team = omp_get_num_threads();
    }
    /* First touch by the thread that will use the page. */
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 3; k++)
            array[k][i] = FIRST[k];

    printf("{\"tool\": \"strata-stream\", \"threads\": %d, \"elements\": %zu, "
           "\"trials\": %ld, \"array_bytes\": %zu, \"huge_page_bytes\": %lld}\n",
           team, n, trials, n * sizeof(double), count_huge_page_bytes());

    double best[KERNELS], worst[KERNELS], sum[KERNELS], first = 0, bytes = 0;
    for (int k = 0; k < KERNELS; k++) {
        best[k] = DBL_MAX;
        worst[k] = sum[k] = 0.0;
    }
    for (long trial = 0; trial < trials; trial++)
        for (int k = 0; k < KERNELS; k++) {
            double start = read_monotonic_clock();
            run_kernel((enum kernel)k, n, array[0], array[1], array[2]);
            double seconds = read_monotonic_clock() - start;
            if (trial == 0) { /* the first trial has a rate of its own */
                first += seconds;
                bytes += BYTES[k] * (double)n;
                continue;
            }
            best[k] = fmin(best[k], seconds);
            worst[k] = fmax(worst[k], seconds);
            sum[k] += seconds;
        }
    printf("{\"first\": %.6g, \"seconds\": %.9g}\n", 1e-9 * bytes / first, first);
    for (int k = 0; k < KERNELS; k++) {
        double gigabytes = 1e-9 * BYTES[k] * (double)n;
        double mean = sum[k] / (double)(trials - 1);
        printf("{\"kernel\": \"%s\", \"gbps\": %.6g, \"seconds\": %.9g, \"best_gbps\": %.6g, "
               "\"best_seconds\": %.9g, \"worst_seconds\": %.9g}\n",
               NAME[k], gigabytes / mean, mean, gigabytes / best[k], best[k], worst[k]);
    }

    int passed = verify_arrays(array, n, trials);
    if (passed)
        puts("{\"done\": true}");
    return passed ? 0 : 1;
}
