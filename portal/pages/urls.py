"""The console's addresses."""

from django.urls import path

from portal.pages import account, live, login, login_oidc, users, views

app_name = "portal"
urlpatterns = [
    path("", views.rp_list, name="rp-list"),
    path("rps/new", views.rp_create, name="rp-create"),
    path("rps/<slug:reference>", views.rp, name="rp"),
    path("rps/<slug:reference>/renew", views.rp_renew, name="rp-renew"),
    path("rps/<slug:reference>/delete", views.rp_delete, name="rp-delete"),
    path("login", login.Login.as_view(), name="login"),
    path("login/once/<str:token>", login.login_once, name="login-once"),
    path("login/oidc", login_oidc.begin, name="oidc-begin"),
    path("login/oidc/callback", login_oidc.callback, name="oidc-callback"),
    path("logout", login.log_out, name="logout"),
    path("password", login.password, name="password"),
    path("account", account.account, name="account"),
    path("account/logout-everywhere", account.log_out_everywhere, name="logout-everywhere"),
    path("users", users.user_list, name="user-list"),
    path("users/new", users.user_new, name="user-new"),
    path("users/<int:user_id>", users.user, name="user"),
    path("users/<int:user_id>/role", users.user_role, name="user-role"),
    path("users/<int:user_id>/link", users.user_link, name="user-link"),
    path("users/<int:user_id>/active", users.user_active, name="user-active"),
    path("users/<int:user_id>/logout", users.user_log_out, name="user-logout"),
    path("console/token", live.token, name="token"),
    path("console/rates", live.rates, name="rates"),
]
