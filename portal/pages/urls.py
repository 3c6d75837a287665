"""The console's addresses."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from portal.pages import live, login, views

app_name = "portal"
urlpatterns = [
    path("", views.rp_list, name="rp-list"),
    path("rps/new", views.rp_create, name="rp-create"),
    path("rps/<slug:reference>", views.rp, name="rp"),
    path("rps/<slug:reference>/renew", views.rp_renew, name="rp-renew"),
    path("rps/<slug:reference>/delete", views.rp_delete, name="rp-delete"),
    path("login", login.Login.as_view(), name="login"),
    path("login/once/<str:token>", login.login_once, name="login-once"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("password", login.password, name="password"),
    path("console/token", live.token, name="token"),
    path("console/rates", live.rates, name="rates"),
]
