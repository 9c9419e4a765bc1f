// Functions of math.h in the subset itself, for every machine to the same bit. Series are those of Taylor, on ranges that are
// reduced until few terms are below the last digit; constants are split so that products with them are exact.

double __scale(double y, int k) {
    if (k > 1023) return y * __of_bits(2046L << 52) * __of_bits((long)(k) << 52);
    if (k < -1022) return y * __of_bits((long)(k + 1077) << 52) * __of_bits(969L << 52);
    return y * __of_bits((long)(k + 1023) << 52);
}

// exp(x + low), for a low part that x has not.
double __exp(double x, double low) {
    if (x != x) return x;
    if (x > 709.8) return INFINITY;
    if (x < -745.2) return 0.0;
    double k = rint(x * 1.4426950408889634);
    double high = x - k * 0.6931471804855391;
    double rest = k * 7.440617110012397e-11 - low;
    double r = high - rest;
    double q = 0.5 + r * (0.16666666666666666 + r * (0.041666666666666664 + r *
        (0.008333333333333333 + r * (0.001388888888888889 + r * (0.0001984126984126984 + r *
        (2.48015873015873e-05 + r * (2.7557319223985893e-06 + r * (2.755731922398589e-07 + r *
        (2.505210838544172e-08 + r * (2.08767569878681e-09 + r * (1.6059043836821613e-10)))))))))));
    return __scale(1.0 + (high + (r * r * q - rest)), (int)k);
}

double exp(double x) { return __exp(x, 0.0); }

double exp2(double x) {
    if (x != x) return x;
    if (x >= 1024.0) return INFINITY;
    if (x < -1076.0) return 0.0;
    double k = rint(x);
    return __scale(__exp((x - k) * 0.6931471805599453, 0.0), (int)k);
}

double expm1(double x) {
    double u = exp(x);
    if (u == 1.0 || x != x) return x;
    if (u - 1.0 == -1.0) return -1.0;
    if (x > 40.0) return u;
    return (u - 1.0) * x / log(u);
}

double log(double x) {
    if (x != x || x == INFINITY) return x;
    if (x < 0.0) return NAN;
    if (x == 0.0) return -INFINITY;
    int k = 0;
    if (x < 2.2250738585072014e-308) {
        x *= 18014398509481984.0;
        k = -54;
    }
    long bits = __bits(x);
    k += (int)(bits >> 52) - 1023;
    double m = __of_bits((bits & 0xfffffffffffffL) | 0x3ff0000000000000L);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        k++;
    }
    double f = m - 1.0, s = f / (2.0 + f), z = s * s, h = 0.5 * f * f;
    double q = z * (0.6666666666666666 + z * (0.4 + z * (0.2857142857142857 + z *
        (0.2222222222222222 + z * (0.18181818181818182 + z * (0.15384615384615385 + z *
        (0.13333333333333333 + z * (0.11764705882352941 + z * (0.10526315789473684 + z *
        (0.09523809523809523 + z * (0.08695652173913043)))))))))));
    return k * 0.6931471804855391 - ((h - (s * (h + q) + k * 7.440617110012397e-11)) - f);
}

double log2(double x) {
    double r = log(x) * 1.4426950408889634, n = rint(r);
    if (fabs(r - n) < 1e-9 && n > -1022.0 && n < 1023.0 && __scale(1.0, (int)n) == x) return n;
    return r;
}

double log10(double x) {
    double r = log(x) * 0.4342944819032518, n = rint(r), p = 1.0;
    if (fabs(r - n) > 1e-9 || n < 0.0 || n > 22.0) return r;
    for (int i = 0; i < (int)n; i++) p *= 10.0;
    return p == x ? n : r;
}

double log1p(double x) {
    double u = 1.0 + x;
    if (u == 1.0) return x;
    if (x > 1e16) return log(x);
    if (x == -1.0) return -INFINITY;
    return log(u) * x / (u - 1.0);
}

// The first digits of a number: products of two such are exact.
double __high(double x) { return __of_bits(__bits(x) & -134217728L); }

double pow(double x, double y) {
    if (y == 0.0 || x == 1.0) return 1.0;
    if (x != x || y != y) return NAN;
    double a = fabs(x), b = fabs(y);
    int whole = b >= 4503599627370496.0 || rint(y) == y;
    int odd = whole && b < 9007199254740992.0 && ((long)b & 1);
    if (a == 1.0) return x < 0.0 ? (whole ? (odd ? -1.0 : 1.0) : NAN) : 1.0;
    if (b == INFINITY) return (a > 1.0) == (y > 0.0) ? INFINITY : 0.0;
    if (a == 0.0 || a == INFINITY) {
        double limit = (a == 0.0) == (y > 0.0) ? 0.0 : INFINITY;
        return odd ? copysign(limit, x) : limit;
    }
    if (x < 0.0 && !whole) return NAN;
    double sign = x < 0.0 && odd ? -1.0 : 1.0;
    if (b > 1e20) return (a > 1.0) == (y > 0.0) ? INFINITY : 0.0;
    int k = 0;
    if (a < 2.2250738585072014e-308) {
        a *= 18014398509481984.0;
        k = -54;
    }
    long bits = __bits(a);
    k += (int)(bits >> 52) - 1023;
    double m = __of_bits((bits & 0xfffffffffffffL) | 0x3ff0000000000000L);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        k++;
    }
    // The logarithm with twice the digits: s + s^3 / 3 + ..., of which the first two terms are sums of two numbers each.
    double f = m - 1.0, d = 2.0 + f, dl = f - (d - 2.0), s = f / d;
    double sh = __high(s), sl = s - sh, dh = __high(d), dm = d - dh;
    double p = s * d, pl = ((sh * dh - p) + sh * dm + sl * dh) + sl * dm;
    double st = (((f - p) - pl) - s * dl) / d;
    double z = s * s, zl = ((sh * sh - z) + 2.0 * sh * sl) + sl * sl + 2.0 * s * st;
    double zh = __high(z), zm = z - zh;
    double c = s * z, cl = ((sh * zh - c) + sh * zm + sl * zh) + sl * zm + s * zl + st * z;
    double th = 0.3333333333333333, tl = 1.850371707708594e-17, thh = __high(th), thm = th - thh;
    double ch = __high(c), cm = c - ch;
    double t = c * th, tt = ((ch * thh - t) + ch * thm + cm * thh) + cm * thm + c * tl + cl * th;
    double q = s * z * z * (0.2 + z * (0.14285714285714285 + z * (0.1111111111111111 + z *
        (0.09090909090909091 + z * (0.07692307692307693 + z * (0.06666666666666667 + z *
        (0.058823529411764705 + z * (0.05263157894736842 + z * (0.047619047619047616 + z *
        (0.043478260869565216 + z * (0.04)))))))))));
    // k log 2 + 2 (s + t + q), the large ones first, what rounding takes of each kept.
    double big = k * 0.6931471804855391, l = big + 2.0 * s;
    double e = k != 0 ? (big - l) + 2.0 * s : 0.0;
    double l2 = l + 2.0 * t, e2 = (l - l2) + 2.0 * t;
    double low = e + e2 + 2.0 * (st + tt + q) + k * 7.440617110012397e-11;
    double lh = l2 + low, ll = (l2 - lh) + low;
    double yh = __high(y), ym = y - yh, lhh = __high(lh), lhm = lh - lhh;
    double r = y * lh;
    if (r > 710.0) return sign * INFINITY;
    if (r < -746.0) return sign * 0.0;
    double rl = ((yh * lhh - r) + yh * lhm + ym * lhh) + ym * lhm + y * ll;
    return sign * __exp(r, rl);
}

double exp10(double x) { return pow(10.0, x); }

// The upper half of a product of 128 bits.
unsigned long __mulhi(unsigned long a, unsigned long b) {
    unsigned long al = a & 0xffffffffUL, ah = a >> 32, bl = b & 0xffffffffUL, bh = b >> 32;
    unsigned long low = al * bl, one = ah * bl + (low >> 32), two = al * bh + (one & 0xffffffffUL);
    return ah * bh + (one >> 32) + (two >> 32);
}

// Sine (0) or cosine (1) of r + low, from -pi/4 to pi/4, in a quadrant.
double __kernel(double r, double low, int quadrant) {
    double z = r * r, value;
    if (quadrant & 1) {
        double h = 0.5 * z, w = 1.0 - h;
        double q = 0.041666666666666664 + z * (-0.001388888888888889 + z * (2.48015873015873e-05 + z
        * (-2.755731922398589e-07 + z * (2.08767569878681e-09 + z * (-1.1470745597729725e-11 + z *
        (4.779477332387385e-14 + z * (-1.5619206968586225e-16 + z * (4.110317623312165e-19))))))));
        value = w + (((1.0 - w) - h) + (z * z * q - r * low));
    } else {
        double q = -0.16666666666666666 + z * (0.008333333333333333 + z * (-0.0001984126984126984 +
        z * (2.7557319223985893e-06 + z * (-2.505210838544172e-08 + z * (1.6059043836821613e-10 + z
        * (-7.647163731819816e-13 + z * (2.8114572543455206e-15 + z *
        (-8.22063524662433e-18))))))));
        value = r + (r * z * q + low * (1.0 - 0.5 * z));
    }
    return quadrant & 2 ? -value : value;
}

// Far from zero: the digits of 2/pi that matter, times the digits of x (Payne and Hanek, 1983).
double __far(double x, int quadrant) {
    unsigned long digits[20] = {0UL, 0xa2f9836e4e441529UL, 0xfc2757d1f534ddc0UL, 0xdb6295993c439041UL, 0xfe5163abdebbc561UL, 0xb7246e3a424dd2e0UL, 0x6492eea09d1921cUL, 0xfe1deb1cb129a73eUL, 0xe88235f52ebb4484UL, 0xe99c7026b45f7e41UL, 0x3991d639835339f4UL, 0x9c845f8bbdf9283bUL, 0x1ff897ffde05980fUL, 0xef2f118b5a0a6d1fUL, 0x6d367ecf27cb09b7UL, 0x4f463f669e5fea2dUL, 0x7527bac7ebe5f17bUL, 0x3d0739f78a5292eaUL, 0x6bfb5fb11f8d5d08UL, 0x56033046fc7b6babUL};
    long bits = __bits(fabs(x));
    int start = (int)(bits >> 52) - 1075 - 2 + 64;
    unsigned long m = (unsigned long)((bits & 0xfffffffffffffL) | 0x10000000000000L);
    int at = start >> 6, shift = start & 63;
    unsigned long w[3];
    for (int i = 0; i < 3; i++) {
        unsigned long next = at + i + 1 < 20 ? digits[at + i + 1] : 0UL;
        w[i] = digits[at + i] << shift | (shift ? next >> (64 - shift) : 0UL);
    }
    unsigned long low = m * w[2], mid = m * w[1] + __mulhi(m, w[2]);
    unsigned long high = m * w[0] + __mulhi(m, w[1]) + (mid < m * w[1] ? 1UL : 0UL);
    int k = (int)(high >> 62);
    long first = (long)(high << 2 | mid >> 62);
    unsigned long second = mid << 2 | low >> 62;
    if (first < 0L) k++;
    double r = (double)(first >> 12) * 2.220446049250313e-16;
    double rest = (double)(first & 4095L) * 5.421010862427522e-20 + (double)second * 2.938735877055719e-39;
    double sum = r + rest, left = (r - sum) + rest;
    double value = sum * 1.5707963267948966;
    double sh = __high(sum), sl = sum - sh, ph = __high(1.5707963267948966), pm = 1.5707963267948966 - ph;
    double tail = ((sh * ph - value) + sh * pm + sl * ph) + sl * pm;
    tail += sum * 6.123233995736766e-17 + left * 1.5707963267948966;
    if (x < 0.0) {
        // sin(-x) = -sin(x), cos(-x) = cos(x): with the angle below zero.
        return __kernel(-value, -tail, quadrant - k & 3);
    }
    return __kernel(value, tail, quadrant + k & 3);
}

double __trig(double x, int quadrant) {
    double a = fabs(x);
    if (x != x || a == INFINITY) return NAN;
    if (a > 100000.0) return __far(x, quadrant);
    double k = rint(x * 0.6366197723675814);
    double r = x - k * 1.5707963267341256, w = k * 6.077100506303966e-11;
    double one = r - w, lost = (r - one) - w;
    double low = k * 2.0222662487959506e-21 - lost;
    double two = one - low;
    return __kernel(two, (one - two) - low, quadrant + (int)k & 3);
}

double sin(double x) { return x == 0.0 ? x : __trig(x, 0); }

double cos(double x) { return __trig(x, 1); }

double tan(double x) { return x == 0.0 ? x : __trig(x, 0) / __trig(x, 1); }

double atan(double x) {
    double high[9] = {0.0, 0.12435499454676144, 0.24497866312686414, 0.35877067027057225, 0.4636476090008061, 0.5585993153435624, 0.6435011087932844, 0.7188299996216245, 0.7853981633974483};
    double low[9] = {0.0, -3.1253241424539383e-18, 1.0698755618734451e-17, -2.4623815582638635e-17, 2.2698777452961687e-17, -5.4556305485916264e-18, 1.5834785051444286e-17, -2.1478388444456983e-17, 3.061616997868383e-17};
    double a = fabs(x);
    if (x != x) return x;
    if (a < 1e-9) return x;
    double u = a > 1.0 ? 1.0 / a : a;
    int i = (int)rint(u * 8.0);
    double c = i * 0.125, t = (u - c) / (1.0 + u * c), z = t * t;
    double q = -0.3333333333333333 + z * (0.2 + z * (-0.14285714285714285 + z * (0.1111111111111111
        + z * (-0.09090909090909091 + z * (0.07692307692307693 + z * (-0.06666666666666667))))));
    double value = high[i] + (t + (t * z * q + low[i]));
    if (a > 1.0) value = 1.5707963267948966 - (value - 6.123233995736766e-17);
    return copysign(value, x);
}

double atan2(double y, double x) {
    if (x != x || y != y) return NAN;
    int left = copysign(1.0, x) < 0.0;
    double value;
    if (y == 0.0) value = 0.0;
    else if (x == 0.0) return copysign(1.5707963267948966, y);
    else if (fabs(x) == INFINITY && fabs(y) == INFINITY) value = 0.7853981633974483;
    else value = atan(fabs(y / x));
    if (left) value = 3.141592653589793 - (value - 1.2246467991473532e-16);
    return copysign(value, y);
}

double asin(double x) { return x == 0.0 ? x : atan2(x, sqrt((1.0 - x) * (1.0 + x))); }

double acos(double x) { return 2.0 * atan2(sqrt(1.0 - x), sqrt(1.0 + x)); }

double sinh(double x) {
    double a = fabs(x);
    if (x == 0.0 || x != x) return x;
    if (a > 709.0) {
        double half = exp(0.5 * a);
        return copysign(0.5 * half * half, x);
    }
    double t = expm1(a);
    return copysign(0.5 * (t + t / (t + 1.0)), x);
}

double cosh(double x) {
    double a = fabs(x);
    if (a > 709.0) {
        double half = exp(0.5 * a);
        return 0.5 * half * half;
    }
    double e = exp(a);
    return 0.5 * e + 0.5 / e;
}

double tanh(double x) {
    double a = fabs(x);
    if (x == 0.0 || x != x) return x;
    if (a > 22.0) return copysign(1.0, x);
    double t = expm1(2.0 * a);
    return copysign(t / (t + 2.0), x);
}

double cbrt(double x) {
    double a = fabs(x);
    if (x == 0.0 || x != x || a == INFINITY) return x;
    double scale = 1.0;
    if (a < 1e-200) {
        a *= 2.9931553532536892e+51;
        scale = 6.938893903907228e-18;
    }
    double y = exp(log(a) / 3.0);
    y = y - (y - a / (y * y)) / 3.0;
    return copysign(y * scale, x);
}

double hypot(double x, double y) {
    double a = fmax(fabs(x), fabs(y)), b = fmin(fabs(x), fabs(y)), scale = 1.0;
    if (a == INFINITY) return a;
    if (x != x || y != y) return NAN;
    if (a > 1e150) {
        a *= 2.409919865102884e-181;
        b *= 2.409919865102884e-181;
        scale = 4.149515568880993e+180;
    } else if (a < 1e-100) {
        a *= 4.149515568880993e+180;
        b *= 4.149515568880993e+180;
        scale = 2.409919865102884e-181;
    }
    return sqrt(a * a + b * b) * scale;
}

double fmod(double x, double y) {
    double r = fabs(x), b = fabs(y), s = b;
    if (x != x || y != y || r == INFINITY || b == 0.0) return NAN;
    if (b == INFINITY) return x;
    while (s + s <= r) s += s;
    while (s >= b) {
        if (r >= s) r -= s;
        if (s == b) break;
        s *= 0.5;
    }
    return copysign(r, x);
}

double round(double x) {
    double t = trunc(x);
    return fabs(x - t) >= 0.5 ? t + copysign(1.0, x) : x == 0.0 ? x : copysign(t, x);
}

double fdim(double x, double y) { return x != x || y != y ? NAN : x > y ? x - y : 0.0; }
