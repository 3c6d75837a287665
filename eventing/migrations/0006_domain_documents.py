from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("eventing", "0005_quota_indexes")]

    operations = [
        migrations.CreateModel(
            name="DomainDocument",
            fields=[
                ("name", models.CharField(max_length=253, primary_key=True, serialize=False)),
                ("serial", models.BigIntegerField()),
                ("fingerprint", models.CharField(max_length=64)),
                ("payload", models.BinaryField()),
                ("kids", models.TextField()),
                ("signature", models.BinaryField()),
                ("received_at", models.DateTimeField()),
            ],
        ),
    ]
